package resource

// Remains is what a session has left where it ran, told by itself and not by the
// state: what a lost state is made anew from.
type Remains struct {
	Session Session // with ID alone where the rest cannot be read
	Body    Body    // with the UUID of the slice that it was given

	// Proven says that only the owner of the state's key can have made it.
	// What is not proven is a claim, which a person has to agree to.
	Proven bool
}
