package resource

// Remains is what a session has left on its host. cosplay rebuilds a lost state from it.
type Remains struct {
	Session Session // with ID alone where the rest cannot be read
	Body    Body    // with the UUID of the slice that it was given

	// Proven says that only the owner of the state's key can have created it. The user must confirm what is not proven.
	Proven bool
}
