package config

import (
	"fmt"
	"strings"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
)

func (l *loader) readSettings(all hcl.Blocks) {
	for i, b := range all {
		l.unnamed(b)
		said := l.read(b, &cosplaySchema)
		if i > 0 {
			first := all[0].DefRange
			l.complain(b.TypeRange, "second cosplay block", "A project has one cosplay block; the first is at %s. Put everything into one.", place(first))
			continue
		}
		l.checkVersion(said.find("required_version"))
		l.state, _ = constant(l, said.find("state"), value.path)
	}
}

func (l *loader) checkVersion(a *attribute) {
	v, ok := l.fixed(a)
	if !ok {
		return
	}
	typed, ok := v.text()
	if !ok {
		return
	}
	wanted, err := version.NewConstraint(typed)
	if err != nil {
		v.wrong(fmt.Sprintf("%q is not a version", typed), "Write what the version has to be, like \">= 0.1\" or \"~> 1.2, != 1.2.3\".")
		return
	}
	is, err := version.NewVersion(l.Version)
	if err != nil || !strings.Contains(l.Version, ".") {
		// The hash of a commit can begin like a version.
		l.report(warning(v.expr.Range(), "cosplay does not check required_version",
			"This build has no version: it is called %q. Install a release of cosplay, or build it with make.", l.Version))
		return
	}
	// A prerelease counts as its release, because it has the same features.
	if !wanted.Check(is.Core()) {
		v.wrong(fmt.Sprintf("this is cosplay %s", l.Version), "The project wants %s. Get a version that fits, or change required_version if this one will do.", typed)
	}
}
