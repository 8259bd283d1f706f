package project

import (
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"cosplay/internal/public"
)

// Editors are the ways to open a workplace in an editor. enter is the command that runs a program in the session.
func (w Workplace) Editors(enter []string) []public.Editor {
	switch machine := strings.TrimPrefix(w.Machine, "ssh://"); {
	case w.Login != nil:
		return []public.Editor{
			{Name: "VS Code", Needs: "the extension Remote - SSH", Command: []string{"code", "--remote", onSSH(w.Session.BodyName()), w.Folder}},
			{Name: "JetBrains Gateway", Needs: "the Host block in ~/.ssh/config", Link: w.gateway()},
		}
	case w.Inside && machine == "":
		return []public.Editor{w.attached(), {Name: "JetBrains Gateway", Needs: "ssh { enabled = true } in the session's block"}}
	case w.Inside:
		return []public.Editor{{Name: "VS Code", Needs: "the extensions Remote - SSH and Dev Containers", Command: []string{"code", "--remote", onSSH(machine)},
			Note: "In that window, run the command Dev Containers: Attach to Running Container, and choose " + w.Session.BodyName() + "."}}
	case machine != "":
		return []public.Editor{{Name: "VS Code", Needs: "the extension Remote - SSH", Command: []string{"code", "--remote", onSSH(machine), w.Folder},
			Note: "The editor's programs run outside the session. Run those that need the GPU from here: " + strings.Join(enter, " ") + " COMMAND"}}
	}
	return []public.Editor{
		{Name: "VS Code", Command: append(enter[:len(enter):len(enter)], "code", "--new-window", w.Folder),
			Note: "The editor's terminals and programs get the session's environment. A terminal of another window: " + strings.Join(enter, " ") + " bash"},
		{Name: "PyCharm", Needs: "PyCharm to be closed", Command: append(enter[:len(enter):len(enter)], "pycharm", w.Folder)},
	}
}

// onSSH is how VS Code names a host of ssh. It converts names to lower case, but ssh does not: such a name is encoded.
func onSSH(host string) string {
	if host == strings.ToLower(host) {
		return "ssh-remote+" + host
	}
	return "ssh-remote+" + encoded("hostName", host)
}

// attached is how VS Code attaches to a container, as its user and not as root, who starts cosplay-init.
func (w Workplace) attached() public.Editor {
	container := "attached-container+" + encoded("containerName", "/"+w.Session.BodyName())
	e := public.Editor{Name: "VS Code", Needs: "the extension Dev Containers",
		Command: []string{"code", "--folder-uri", "vscode-remote://" + container + w.Folder}}
	if w.Folder == "" {
		e.Command = []string{"code", "--remote", container}
		return e
	}
	e.Settings = map[string]string{"workspaceFolder": w.Folder, "remoteUser": w.Session.Spec.User.Name}
	return e
}

func encoded(key, value string) string {
	text, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		panic(err) // strings cannot fail
	}
	return hex.EncodeToString(text)
}

func (w Workplace) gateway() string {
	values := url.Values{"type": {"ssh"}, "deploy": {"true"}, "host": {w.Session.BodyName()}, "projectPath": {w.Folder}}
	for _, o := range w.Login.Options {
		switch o.Name {
		case "Port":
			values.Set("port", o.Value)
		case "User":
			values.Set("user", o.Value)
		}
	}
	return "jetbrains-gateway://connect#" + values.Encode()
}
