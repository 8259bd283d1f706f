package cli

import "testing"

// TestSplitPath: what a user types as a path is one of this machine, or in a session.
func TestSplitPath(t *testing.T) {
	for word, want := range map[string]struct {
		session, path string
		in            bool
	}{
		"worker-3:/data/":           {"worker-3", "/data/", true},
		"worker[3]:out":             {"worker[3]", "out", true},
		"session.worker[3]:":        {"session.worker[3]", "", true},
		`worker["a"]:/p:q`:          {`worker["a"]`, "/p:q", true},
		`worker["a/b:c"]:/p`:        {`worker["a/b:c"]`, "/p", true},
		`session.worker["a:b/"]:./`: {`session.worker["a:b/"]`, "./", true},
		":/p":                       {"", "/p", true},
		"worker:a\nb":               {"worker", "a\nb", true},
		"/data/a:b":                 {"", "/data/a:b", false},
		"./a:b":                     {"", "./a:b", false},
		"../a:b":                    {"", "../a:b", false},
		".:b":                       {"", ".:b", false},
		"data/a:b":                  {"", "data/a:b", false},
		`dir/x["a"]:b`:              {"", `dir/x["a"]:b`, false},
		"file":                      {"", "file", false},
		"-":                         {"", "-", false},
		`worker["a`:                 {"", `worker["a`, false},
	} {
		session, path, in := splitPath(word)
		if session != want.session || path != want.path || in != want.in {
			t.Errorf("%q: %q, %q, %v", word, session, path, in)
		}
	}
}
