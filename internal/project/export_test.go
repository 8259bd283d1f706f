package project

var (
	CheckRights = (*Project).checkRights
	RemoveRun   = removeRun
)
