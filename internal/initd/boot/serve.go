package boot

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"cosplay/internal/initd"
	"cosplay/internal/initd/account"
	"cosplay/internal/initd/environ"
	"cosplay/internal/initd/launch"
	"cosplay/internal/initd/sshd"
)

// How long the command may take after SIGTERM, and then twice, programs over ssh and their connections. Without a command
// there is more time for these. With restPatience it is what cosplay tells the engine: 8 s.
const (
	stopPatience  = 5 * time.Second
	closePatience = time.Second / 2
	idlePatience  = time.Second
)

// nameProcess sets the name that top and ps show; otherwise it would be "exe".
func nameProcess(name string) {
	if comm, err := os.OpenFile("/proc/self/comm", os.O_WRONLY, 0); err == nil {
		_, _ = comm.WriteString(name)
		_ = comm.Close()
	}
}

// serve creates the user, the environment and the ssh server, and runs the command. Its exit code is the container's.
func serve(config string) int {
	nameProcess("cosplay-init")
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	c, err := initd.Load(config)
	if err != nil {
		return fail(codeFailed, err)
	}
	run, err := prepare(c)
	if err != nil {
		return fail(codeFailed, err)
	}
	// A greeting by ssh proves to clients that the session runs. So serve finds and starts the command before the
	// server greets any client.
	var command *exec.Cmd
	if len(c.Command) > 0 {
		if command, err = find(c.Command, run); err != nil {
			return fail(startCode(err), err)
		}
	}
	greet := func() {}
	if c.SSH.Enabled {
		server, serve, err := listen(c, run)
		if err != nil {
			return fail(codeFailed, err)
		}
		patience := closePatience
		if command == nil {
			patience = idlePatience
		}
		defer server.Close(patience)
		greet = serve
	}
	if command == nil {
		greet()
		say("no command: the session stays up until it is stopped")
		initd.Ready(initd.ReadyPath)
		idle(signals)
		return 0
	}
	say("starts command %s", command.Args[0])
	if err := command.Start(); err != nil {
		return fail(startCode(err), fmt.Errorf("command: %w", err))
	}
	greet()
	initd.Ready(initd.ReadyPath)
	return attend(command, signals)
}

// prepare creates the user and the environment in the container.
func prepare(c initd.Config) (*launch.Launcher, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("not started as root, so it cannot make the user; create the container with user 0")
	}
	who, notes, err := account.Setup("/", c.User)
	if err != nil {
		return nil, err
	}
	run := launcher(c, who)
	notes = append(notes, environ.Install("/", run.Image, c.Env, c.Secrets, c.User)...)
	for _, note := range notes {
		say("%s", note)
	}
	if _, err := os.Stat("/tmp"); err != nil {
		if err := os.Mkdir("/tmp", 0o777); err != nil || os.Chmod("/tmp", 0o777|os.ModeSticky) != nil {
			say("the image has no /tmp and takes none; mount one (tmpfs)")
		}
	}
	for _, volume := range c.Volumes {
		if err := handOver(volume, who); err != nil {
			say("%s cannot write to the volume: %v", who.Name, err)
		}
	}
	run.OwnStreams()
	say("user %s (%d:%d), home %s, shell %s, starts in %s", who.Name, who.UID, who.GID, who.Home, cmp.Or(who.Shell, "none in this image"), run.Dir())
	return run, nil
}

// handOver gives a new volume to the user: one that is empty and still root's, as the engine creates it. A volume that
// has content, or another owner, keeps it.
func handOver(volume string, who account.Account) error {
	content, err := os.ReadDir(volume)
	if err != nil || len(content) > 0 {
		return err
	}
	info, err := os.Stat(volume)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		return err
	}
	return os.Chown(volume, int(who.UID), int(who.GID))
}

// listen creates the ssh server on its port; serve lets it greet clients. listen prints all that there is to print, so
// that the key's fingerprint is in the log before any client connects, and no line follows those of the command.
func listen(c initd.Config, run *launch.Launcher) (server *sshd.Server, serve func(), err error) {
	keys, notes := sshd.ParseKeys(c.AuthorizedKeys)
	for _, note := range notes {
		say("%s", note)
	}
	pem, err := os.ReadFile(c.SSH.HostKey)
	if err != nil {
		return nil, nil, fmt.Errorf("no host key: %w; mount the session's at %s", err, c.SSH.HostKey)
	}
	hostKey, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		return nil, nil, fmt.Errorf("%s is no private key (%w); replace the session to get a new one", c.SSH.HostKey, err)
	}
	l, err := net.Listen("tcp", ":"+strconv.Itoa(c.SSH.Port))
	if err != nil {
		return nil, nil, fmt.Errorf("ssh: %w; choose another port for ssh, or give the container its own network", err)
	}
	say("ssh on port %d for %s, keys: %d, host key %s", c.SSH.Port, run.Account.Name, len(keys), ssh.FingerprintSHA256(hostKey.PublicKey()))
	if len(keys) == 0 {
		say("no key can log in; set authorized_keys, or use cosplay exec")
	}
	server = &sshd.Server{Launcher: run, Keys: keys, HostKey: hostKey, Load: adapt()}
	return server, func() {
		go func() {
			if err := server.Serve(l); err != nil {
				say("ssh ended: %v", err)
			}
		}()
	}, nil
}

// fewConnections is up to how many connections may leave much garbage.
const fewConnections = 16

// memoryLimit is the most memory that the Go runtime takes where garbage is all that it would keep, bytes: on a busy
// machine the collector falls behind the clients of a flood. The whole program stays below 96 MiB with it.
const memoryLimit = 64 << 20

// adapt returns a function that sets the Go runtime to the number of ssh connections. Each needs one processor at most:
// with more, the goroutines of one transfer would wake threads in turn, which takes more time than their work. Each
// packet is a new object: with the usual 100 percent of garbage a tenth of a transfer's time would go into collecting it.
func adapt() func(connections int) {
	processors, garbage := runtime.GOMAXPROCS(0), 0
	debug.SetMemoryLimit(memoryLimit)
	return func(connections int) {
		runtime.GOMAXPROCS(min(max(1, connections), processors))
		before := garbage
		if garbage = 100; connections <= fewConnections {
			garbage = 400
		}
		if garbage != before {
			debug.SetGCPercent(garbage)
		}
	}
}

// idle waits for a signal to end; without a command, other signals have no recipient.
func idle(signals <-chan os.Signal) {
	for s := range signals {
		switch s {
		case syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT:
			say("stopped by %v", s)
			return
		}
	}
}

// find prepares the session's command, on the container's own streams.
func find(argv []string, run *launch.Launcher) (*exec.Cmd, error) {
	command, err := run.Command(run.Environ(nil, nil), argv...)
	if err != nil {
		return nil, fmt.Errorf("command: %w", err)
	}
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil { // the container has a terminal: it is the command's
		command.SysProcAttr.Setsid, command.SysProcAttr.Setpgid, command.SysProcAttr.Foreground = false, true, true
	}
	return command, nil
}

// attend passes signals to the command until it ends. If it has not ended some time after SIGTERM, attend kills its
// whole process group.
func attend(command *exec.Cmd, signals <-chan os.Signal) int {
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // the process state has more detail than the error
		close(ended)
	}()
	var late <-chan time.Time
	for {
		select {
		case s := <-signals:
			_ = command.Process.Signal(s) // an error means that the command has ended
			if s == syscall.SIGTERM && late == nil {
				late = time.After(stopPatience)
			}
		case <-late:
			say("the command did not end within %v of SIGTERM; killed", stopPatience)
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		case <-ended:
			return report(command)
		}
	}
}

func report(command *exec.Cmd) int {
	status := command.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		say("the command was ended by signal %d (%v)", status.Signal(), status.Signal())
		return 128 + int(status.Signal())
	}
	say("the command ended with code %d", status.ExitStatus())
	return status.ExitStatus()
}
