package config_test

import (
	"fmt"
	"strings"
	"testing"

	"cosplay/internal/config"
)

// volumesOf lists the volumes of each session.
func volumesOf(i *config.Intent) string {
	var all strings.Builder
	for _, s := range i.Sessions {
		fmt.Fprintf(&all, "%s:", s.Address)
		for _, v := range s.Spec.Volumes {
			fmt.Fprintf(&all, " %s=%s,%t", v.Source, v.Target, v.ReadOnly)
		}
		all.WriteString("\n")
	}
	return all.String()
}

// TestDynamic writes blocks for the elements of a map, a list or a set, beside others in the order of the file.
func TestDynamic(t *testing.T) {
	for name, test := range map[string]struct{ file, body, want string }{
		"a map of a variable, between others": {"a.hcl", `
variable "data" { default = { b = "/mnt/b", a = "/mnt/a" } }
session "w" {
  target = "rtx-2060"
  volume {
    source = "/first"
    target = "/first"
  }
  dynamic "volume" {
    for_each = var.data
    content {
      source    = volume.value
      target    = "/data/${volume.key}"
      read_only = volume.key == "a"
    }
  }
  volume {
    source = "/last"
    target = "/last"
  }
}`, "session.w: /first=/first,false /mnt/a=/data/a,true /mnt/b=/data/b,false /last=/last,false\n"},
		"other blocks in each session": {"a.hcl", `
session "w" {
  for_each = { one = ["/a"], two = ["/a", "/b"], none = [] }
  target   = "rtx-2060"
  dynamic "volume" {
    for_each = each.value
    iterator = disk
    content {
      source = disk.value
      target = "/${each.key}/${disk.key}"
    }
  }
}`, "session.w[\"none\"]:\nsession.w[\"one\"]: /a=/one/0,false\nsession.w[\"two\"]: /a=/two/0,false /b=/two/1,false\n"},
		"the same blocks, with other values": {"a.hcl", `
session "w" {
  count  = 2
  target = "rtx-2060"
  dynamic "volume" {
    for_each = toset(["/a"])
    content {
      source = volume.value
      target = "/x${count.index}"
    }
  }
}`, "session.w[0]: /a=/x0,false\nsession.w[1]: /a=/x1,false\n"},
		"in JSON": {"a.hcl.json", `{"session": {"w": {"target": "rtx-2060", "dynamic": {"volume": {
  "for_each": {"a": "/mnt/a"}, "content": {"source": "${volume.value}", "target": "/data/${volume.key}"}}}}}}`,
			"session.w: /mnt/a=/data/a,false\n"},
	} {
		intent, diags := config.Load(map[string][]byte{test.file: []byte(test.body)}, options())
		if diags.HasErrors() {
			t.Errorf("%s: %s", name, diags)
		} else if got := volumesOf(intent); got != test.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, test.want)
		}
	}
}

// TestDynamicOnce leaves a block out or writes it once, and keeps the places of its values.
func TestDynamicOnce(t *testing.T) {
	const text = `
variable "login" { default = true }
session "w" {
  target = "rtx-2060"
  dynamic "ssh" {
    for_each = var.login ? [2201] : []
    content {
      port = ssh.value
    }
  }
  dynamic "limits" {
    for_each = []
    content { cpus = limits.value }
  }
}`
	intent, diags := config.Load(map[string][]byte{"a.hcl": []byte(text)}, options())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	s := intent.Sessions[0]
	if !s.Spec.SSH.Enabled || s.Spec.SSH.Port != 2201 || s.Spec.Limits.CPUs != 0 {
		t.Errorf("ssh %+v, limits %+v", s.Spec.SSH, s.Spec.Limits)
	}
	if at := s.Ranges.At("ssh.port"); at.Start.Line != 8 {
		t.Errorf("ssh.port is at line %d", at.Start.Line)
	}
}

// TestImportsEach imports and moves sessions for the elements of a map, also in JSON.
func TestImportsEach(t *testing.T) {
	const native = `
locals { found = { a = "MIG-1", b = "MIG-2" } }
session "x" {
  for_each = local.found
  target   = "rtx-2060"
}
import {
  for_each = local.found
  to       = session.x[each.key]
  id       = each.value
}
moved {
  for_each = { old = "a", older = "b" }
  from     = session.before[each.key]
  to       = session.x[each.value]
}`
	const inJSON = `{"locals": {"found": {"a": "MIG-1", "b": "MIG-2"}},
"session": {"x": {"for_each": "${local.found}", "target": "rtx-2060"}},
"import": {"for_each": "${local.found}", "to": "session.x[each.key]", "id": "${each.value}"},
"moved": {"for_each": {"old": "a", "older": "b"}, "from": "session.before[each.key]", "to": "session.x[each.value]"}}`
	for file, text := range map[string]string{"a.hcl": native, "a.hcl.json": inJSON} {
		intent, diags := config.Load(map[string][]byte{file: []byte(text)}, options())
		if diags.HasErrors() {
			t.Errorf("%s: %s", file, diags)
			continue
		}
		got := ""
		for _, i := range intent.Imports {
			got += fmt.Sprintf("%s %s\n", i.To, i.ID)
		}
		for _, m := range intent.Moves {
			got += fmt.Sprintf("%s %s\n", m.From, m.To)
		}
		want := "session.x[\"a\"] MIG-1\nsession.x[\"b\"] MIG-2\nsession.before[\"old\"] session.x[\"a\"]\nsession.before[\"older\"] session.x[\"b\"]\n"
		if got != want {
			t.Errorf("%s: got\n%swant\n%s", file, got, want)
		}
	}
}
