package mps

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cosplay/internal/proc"
	"cosplay/internal/resource"
)

// answerTime is how long a daemon may take to answer a command.
const answerTime = 3 * time.Second

// ask gives commands to the daemon of a folder, and returns the lines of its answer, and which share of the multiprocessors
// programs get by default, in percent: that is asked last, and shows that the answer is complete. A daemon that does not run or does
// not answer is an error. The daemon does not report that it does not know a command. Commands are given again where
// another program than cosplay asks at the same time, so they must do the same when they are given twice.
func ask(ctx context.Context, program string, m resource.MPS, commands ...string) (lines []string, percent float64, err error) {
	done, err := turn(ctx, m)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	limited, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for {
		lines, err := askOnce(limited, program, m, append(commands, "get_default_active_thread_percentage")...)
		if last := len(lines) - 1; err == nil && last >= 0 {
			if percent, failed := strconv.ParseFloat(lines[last], 64); failed == nil {
				return lines[:last], percent, nil
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, 0, ctx.Err()
		case limited.Err() != nil:
			return nil, 0, fmt.Errorf("it does not answer %s within %s", commands[0], answerTime)
		case err != nil && !strings.HasPrefix(err.Error(), "Cannot send command"):
			return nil, 0, err
		}
		time.Sleep(pollEvery)
	}
}

// turn waits until nothing else of cosplay asks the daemon of a folder: of several that ask at once, NVIDIA's program
// refuses some, says to some that there is no daemon, and gives some an empty answer without an error. The lock is on the
// pipe folder.
func turn(ctx context.Context, m resource.MPS) (done func(), err error) {
	dir, err := os.Open(m.Pipes())
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil // no daemon runs there
	}
	if err != nil {
		return nil, err
	}
	for over := time.Now().Add(turnTime); ; time.Sleep(pollEvery / 4) {
		switch err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return func() { dir.Close() }, nil
		case ctx.Err() != nil:
			return nil, errors.Join(ctx.Err(), dir.Close())
		case time.Now().After(over):
			return nil, errors.Join(errBusy, dir.Close())
		}
	}
}

// turnTime is longer than several others take that ask a daemon which does not answer.
const turnTime = 5 * answerTime

var errBusy = errors.New("other commands of cosplay have asked it for a long time and are not answered")

// quit asks the daemon of a folder to end.
func quit(ctx context.Context, program string, m resource.MPS) error {
	done, err := turn(ctx, m)
	if err != nil {
		return err
	}
	defer done()
	limited, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err = askOnce(limited, program, m, "quit")
	return err
}

// askOnce gives commands to the daemon of a folder, and returns the lines that it wrote.
func askOnce(ctx context.Context, program string, m resource.MPS, commands ...string) ([]string, error) {
	command := exec.CommandContext(ctx, program)
	command.Dir, command.Env = "/", environment(m)
	command.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	var out, complaint bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaint
	if command.Run() != nil {
		return nil, errors.New(strings.TrimSpace(out.String() + complaint.String()))
	}
	return strings.Fields(out.String()), nil
}

// environment is that of the daemon and of commands to it. Nothing else of cosplay's environment is passed on.
func environment(m resource.MPS) []string {
	return []string{"PATH=" + os.Getenv("PATH"), resource.PipeVariable + "=" + m.Pipes(), resource.LogVariable + "=" + m.Logs()}
}

// process is one of MPS.
type process struct {
	pid     int
	control bool   // a daemon, else a server
	pipe    string // its pipe folder; "" where its environment cannot be read
	visible string // its CUDA_VISIBLE_DEVICES
	blind   bool   // that is set, and empty: it serves no GPU
}

// defaultPipe is the pipe folder of a daemon that was started without one.
const defaultPipe = "/tmp/nvidia-mps"

const (
	kernelName = "nvidia-cuda-mps" // of a program of MPS in /proc/PID/comm, which has 15 characters
	serverName = "nvidia-cuda-mps-server"
)

// processes are those of MPS on this machine. Commands to a daemon are not among them.
func processes() (all []process) {
	_ = proc.Each(func(pid int) {
		read := func(name string) string {
			data, _ := os.ReadFile(filepath.Join(proc.Root, strconv.Itoa(pid), name)) // it may have ended
			return string(data)
		}
		if strings.TrimSpace(read("comm")) != kernelName {
			return
		}
		environ, _ := proc.Environment(proc.Root, pid) // first: a program that just starts has no words before either
		words := strings.Split(strings.TrimRight(read("cmdline"), "\x00"), "\x00")
		p := process{pid: pid, control: filepath.Base(words[0]) == resource.MPSControl}
		if p.control && len(words) == 1 || !p.control && filepath.Base(words[0]) != serverName {
			return
		}
		if len(environ) > 0 {
			p.pipe, p.visible = cmp.Or(variable(environ, resource.PipeVariable), defaultPipe), variable(environ, visibleVariable)
			p.blind = slices.Contains(environ, visibleVariable+"=")
		}
		all = append(all, p)
	})
	return all
}

const visibleVariable = "CUDA_VISIBLE_DEVICES"

func variable(environ []string, name string) string {
	i := slices.IndexFunc(environ, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	if i < 0 {
		return ""
	}
	return strings.TrimPrefix(environ[i], name+"=")
}

// using are the processes of the daemon of a folder.
func using(m resource.MPS) []process {
	return slices.DeleteFunc(processes(), func(p process) bool { return p.pipe != m.Pipes() })
}

// user names who runs a process.
func (p process) user() string {
	uid, known := p.uid()
	if !known {
		return "another user"
	}
	if account, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return account.Username
	}
	return fmt.Sprint("uid ", uid)
}

func (p process) uid() (uid int, known bool) {
	info, err := os.Stat(fmt.Sprintf("/proc/%d", p.pid))
	if err != nil {
		return 0, false
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), true
}

// installed reports whether a process runs a program of MPS that root has installed. A user can give any program its name.
func (p process) installed() bool {
	path := fmt.Sprintf("/proc/%d/exe", p.pid)
	program, err := os.Readlink(path)
	if err != nil || strings.TrimSuffix(filepath.Base(program), " (deleted)") != resource.MPSControl {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Sys().(*syscall.Stat_t).Uid == 0
}

// Others finds the control daemons of all users but one, who cannot read which GPUs they serve: root can. Their pipe
// folders are left out. everyGPU is what a daemon serves that names no GPU.
func Others(uid int, everyGPU string) (all []resource.ForeignDaemon) {
	for _, p := range processes() {
		if of, known := p.uid(); p.control && known && of != uid && p.pipe != "" && !p.blind && p.installed() {
			all = append(all, resource.ForeignDaemon{PID: p.pid, User: p.user(), GPUs: cmp.Or(p.visible, everyGPU)})
		}
	}
	return all
}
