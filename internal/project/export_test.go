package project

var (
	CheckRights = (*Project).checkRights
	NoteOffered = (*Fleet).noteOffered
	RemoveRun   = removeRun
)
