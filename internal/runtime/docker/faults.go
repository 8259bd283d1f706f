package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cosplay/internal/pattern"
	"cosplay/internal/prose"
	"cosplay/internal/resource"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

// subject is what an operation of the engine was about, for its messages.
type subject struct {
	name  string // of the container
	image string
	bind  string
	port  int    // on the host
	taken string // the holder of the port; "" if unknown
	where string // the attribute that has the port
}

// fault is an error of an engine, what it means to the user and how to fix it. $1 is what the sign matched; NAME,
// IMAGE, BIND, PORT, HOLDER are the subject's.
type fault struct {
	sign string // in the engine's words, a regular expression: compiled when something fails
	what string
	fix  string
}

const (
	installToolkit = `install NVIDIA's container toolkit (apt-get install nvidia-container-toolkit), then: sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker. ` +
		withoutDocker
	withoutDocker = `Without it, sessions can run without Docker: runtime = "process" in the host block`
	fixVolume     = `create it (mkdir -p) or correct the path in cosplay.hcl. An engine of another machine cannot see this one's folders`
	startEngine   = `start it (sudo systemctl start docker), or run sessions without it: runtime = "process" in the host block`
	noAnswer      = "the engine does not answer"
)

// faults are in the order in which they are tried: the more specific first.
var faults = []fault{
	{`(?i)permission denied.*(?:docker (?:API|daemon)|\.sock)`, "you may not use the engine's socket", "sudo usermod -aG docker $$USER, then log in again"},
	{`(?i)cannot connect to the docker daemon|error during connect|connection refused|no such host`, noAnswer, startEngine},

	{`(?i)the container name "/?([^"]+)" is already in use by (?:container )?"?(\w{12})`,
		"the name $1 is taken by the container $2, which was created meanwhile", "remove it (docker rm -f $1) or give it another name (docker rename)"},
	{`(?i)invalid container name \(|container create option: names must match`, "NAME cannot be the name of a container", "use letters, digits, - and _ only in the name of the session block"},
	{`(?i)no such image: (?:docker\.io/(?:library/)?)?(\S+?)(?::?\s|$)`, "there is no image $1", `get it by docker pull or docker build, or write pull = "missing" in the session block`},

	{`bind source path does not exist: (\S+)`, "there is no $1 to mount", fixVolume},
	{`error mounting "([^"]+)" to rootfs at "[^"]+".*(?:no such file|not a directory)`,
		"$1 cannot be mounted: it was removed, or it is a file where the image has a folder", fixVolume},
	{`invalid mount path: '([^']*)'`, "the path $1 of a volume is not absolute", "write it with a / at the front, or a bare name for a named volume"},
	{`Duplicate mount point: (\S+)|(\S+): duplicate mount destination`, "two things would be mounted at $1$2", "give the volume another target. /workspace and /run/cosplay are the session's own"},
	{`"([^"]+)" includes invalid characters for a local volume name|named volume "([^"]+)".*names must match`, "$1$2 cannot be the name of a volume", "use letters, digits, - _ . or an absolute path"},

	{`port is already allocated|bind: address already in use|failed to bind host port.*address already in use`,
		"port PORT on BIND is taken by HOLDER", `choose another in WHERE, or free it`},
	{`cannot assign requested address`, "BIND is not an address of this machine", "correct the address in WHERE"},
	{`(?:bind|listen).*permission denied|cannot expose privileged port`, "the engine may not open port PORT", "choose one from 1024 in WHERE"},

	{`exec format error|does not match the (?:detected|specified) (?:host )?platform`,
		"the image IMAGE is for another kind of processor", "get the one for this machine: docker pull --platform"},
	{`exec: \\?"([^"\\]+)\\?".*(?:no such file|permission denied|not found)`,
		"$1 cannot be started in a container of IMAGE", "run cosplay apply, which writes the session folder again. The folder must not be on a file system mounted noexec"},

	{`could not select device driver`, "the engine has no way to give a container a GPU", installToolkit},
	{`(?i)unknown or invalid runtime name: (\S+)|unknown runtime specified (\S+)`, "the engine does not know the runtime $1$2", installToolkit},
	{`unresolvable CDI devices? ([^\s:]+)`, "the slice's device $1 does not exist",
		"run cosplay apply, which writes it again. Engine and NVIDIA's runtime must look for devices in /var/run/cdi"},
	{`nvidia-container-cli: (.*)`, "NVIDIA's hook refuses the slice ($1)", "check that the slice exists: nvidia-smi -L, cosplay plan"},
	{`error running (?:prestart )?hook`, "a hook of the engine failed. Possible cause: NVIDIA's hook", "check nvidia-smi -L, and journalctl -u docker"},

	{`no space left on device`, "the disk of the engine or of the session folder is full", "run docker system df, which shows what takes the space"},
	{`(?i)minimum memory limit allowed|range of CPUs is from`, "the machine cannot keep the limits", "correct the limits block"},
	{`[Cc]ontainer (\S+) is not running`, "the container does not run", "run cosplay apply, which starts it"},
	{`(?i)response from daemon: not found$`, "the engine does not have this function, as podman before 4.5",
		"update the engine, or recreate the container: cosplay apply --replace with the address of the session"},
	{`No such container`, "the container was removed", "run cosplay apply, which creates it again"},
}

// lateError is the error of a context of within.
type lateError struct{ after time.Duration }

func (e lateError) Error() string { return "no answer" + e.limit() }

// limit is empty where it is not known.
func (e lateError) limit() string {
	if e.after == 0 {
		return ""
	}
	return fmt.Sprintf(" within %s", e.after)
}

// Is makes the error one of a deadline.
func (e lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// within limits the time of requests to the engine, and notes the limit for their errors.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, lateError{limit})
}

// explain says what an error of the engine means, and how to fix it. Without an error it returns none.
func (e *Engine) explain(doing string, err error, about subject) error {
	advise := func(what, fix string) error {
		return prose.Advice{What: e.words(doing+": "+what) + " (the engine says: " + brief(err) + ")", Fix: e.words(fix), Cause: err}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded): // Go's text for it says neither who nor how long
		late, _ := errors.AsType[lateError](err)
		return prose.Advice{What: e.words(doing + ": the engine does not answer" + late.limit()), Cause: err,
			Fix: e.words("check it (docker ps, journalctl -u docker), restart it if it hangs (sudo systemctl restart docker), and run the same command again")}
	}
	said := err.Error()
	for _, f := range faults {
		sign := regexp.MustCompile(f.sign)
		caught := sign.FindStringSubmatchIndex(said)
		if caught == nil {
			continue
		}
		fill := func(words string) string { return about.fill(string(sign.ExpandString(nil, words, said, caught))) }
		return advise(fill(f.what), fill(f.fix))
	}
	if client.IsErrConnectionFailed(err) {
		return advise(noAnswer, startEngine)
	}
	return fmt.Errorf("%s: %w", e.words(doing), err)
}

func (s subject) fill(words string) string {
	holder := cmp.Or(s.taken, fmt.Sprintf("another program (ss -ltnp 'sport = :%d' shows which)", s.port))
	return strings.NewReplacer("NAME", s.name, "IMAGE", s.image, "BIND", s.bind, "PORT", strconv.Itoa(s.port), "HOLDER", holder, "WHERE", cmp.Or(s.where, sshBlock)).Replace(words)
}

var portSigns = pattern.Of(`port is already allocated|address already in use`)

// sshBlock is where the port of ssh is in the configuration.
const sshBlock = `the ssh block (port = "auto" takes a free one)`

var portNumber = pattern.Of(`:(\d+)(?:\D|$)`)

// aboutPort is the subject of an error that may be about a port of a session, and whether the port is that of ssh.
func (e *Engine) aboutPort(ctx context.Context, s resource.Session, sshPort int, err error) (what subject, ofSSH bool) {
	what, ofSSH = about(s, sshPort), s.Spec.SSH.Enabled
	for _, found := range portNumber().FindAllStringSubmatch(err.Error(), -1) {
		number, _ := strconv.Atoi(found[1])
		i := slices.IndexFunc(s.Spec.Ports, func(p resource.Port) bool { return p.Host == number })
		if i >= 0 && (!s.Spec.SSH.Enabled || number != sshPort) {
			what.bind, what.port, what.where, ofSSH = s.Spec.Ports[i].Bind, number, "ports", false
			break
		}
	}
	if !portSigns().MatchString(err.Error()) {
		return what, false
	}
	what.taken = e.holder(ctx, what.port)
	return what, ofSSH
}

// aboutImported is the subject of an error of an imported container, which keeps the ports that it was created with.
func (e *Engine) aboutImported(ctx context.Context, s resource.Session, there *container.InspectResponse, err error) subject {
	what := about(s, 0)
	what.where = fmt.Sprintf("the block of %s, which recreates the container", s.Address)
	for _, found := range portNumber().FindAllStringSubmatch(err.Error(), -1) {
		for _, all := range there.HostConfig.PortBindings {
			for _, b := range all {
				if b.HostPort != found[1] {
					continue
				}
				what.bind = cmp.Or(b.HostIP, "0.0.0.0")
				what.port, _ = strconv.Atoi(b.HostPort)
				if portSigns().MatchString(err.Error()) {
					what.taken = e.holder(ctx, what.port)
				}
				return what
			}
		}
	}
	return what
}

// portError is a start that failed because of the port. Engines report it by text only, and a program in the
// container may print the same text: only the caller knows which of them it was.
type portError struct{ error }

func (e portError) Unwrap() error { return e.error }

func portTaken(err error) bool { return errors.As(err, new(portError)) }

// The part of the engine's message that is shown: the beginning says where, the end why.
const headLength, tailLength = 70, 200

func brief(err error) string {
	said := strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "Error response from daemon: ")
	all := []rune(said)
	if len(all) <= headLength+tailLength {
		return said
	}
	return string(all[:headLength]) + " ... " + string(all[len(all)-tailLength:])
}

// notOurs says whose container has a session's name.
func (e *Engine) notOurs(there *container.InspectResponse) error {
	name, id := strings.TrimPrefix(there.Name, "/"), short(there.ID)
	if address := there.Config.Labels[labelAddress]; there.Config.Labels[labelLineage] != "" {
		return prose.Advice{What: fmt.Sprintf("the name %s is taken by the container %s of %s in another cosplay project, "+
			"or in this one with another state", name, id, address), Fix: "run cosplay destroy there, or give the session block here another name"}
	}
	return prose.Advice{What: fmt.Sprintf("the name %s is taken by the container %s (image %s), which cosplay did not make", name, id, there.Config.Image),
		Fix: e.words(fmt.Sprintf("remove it (docker rm -f %[1]s), rename it (docker rename %[1]s NAME), or give the session block another name", name))}
}
