package project

var (
	CheckRights = (*Project).checkRights
	NoteOffered = (*Project).noteOffered
	RemoveRun   = removeRun
)
