package project

// For the tests.
var (
	CheckRights = (*Project).checkRights
	RemoveRun   = removeRun
)
