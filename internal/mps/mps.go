// Package mps finds, starts and ends the control daemons of NVIDIA's Multi-Process Service (nvidia-cuda-mps-control).
// A daemon runs as the user of the sessions, who needs no right of root for it, and serves one GPU or one MIG slice.
package mps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"sync"
	"syscall"
	"time"

	"cosplay/internal/ledger"
	"cosplay/internal/pattern"
	"cosplay/internal/prose"
	"cosplay/internal/resource"
)

// Service runs the daemons of one project on this host.
type Service struct {
	Dir   string              // in which each daemon has its folder
	Known []string            // folders that the state has, wherever they are
	As    *syscall.Credential // the user of the sessions; nil for the one who runs cosplay
}

// Of finds and runs the daemons that are searched for, as the user of the sessions. A GPU has its folder for all projects
// of that user with the same ledger, which gives the whole of it to one project at a time.
func Of(search resource.MPSSearch) Service {
	base, as := baseDir()
	sum := sha256.Sum256([]byte(search.Key))
	return Service{Dir: filepath.Join(base, hex.EncodeToString(sum[:4])), Known: search.Known, As: as}
}

// baseDir is the folder of all MPS daemons of a user. Root does not write into the home of the user who called sudo.
func baseDir() (dir string, as *syscall.Credential) {
	uid, uidErr := strconv.Atoi(os.Getenv("SUDO_UID"))
	gid, gidErr := strconv.Atoi(os.Getenv("SUDO_GID"))
	if os.Geteuid() == 0 && uidErr == nil && gidErr == nil && uid != 0 {
		return filepath.Join(ledger.SystemDir, "mps"), &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if who, known := user.Current(); err != nil && known == nil {
			home = who.HomeDir
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "cosplay", "mps"), nil
}

// Program is the path of the control program; "" where it is missing.
func Program() string {
	path, err := exec.LookPath(resource.MPSControl)
	if err != nil {
		return ""
	}
	return path
}

const (
	startTime = 10 * time.Second // for a daemon to start or to end
	pollEvery = 20 * time.Millisecond
)

// Exist reports whether the project may have a daemon.
func (s Service) Exist() bool {
	_, err := os.Stat(s.Dir)
	return err == nil || len(s.Known) > 0
}

// Read finds the folders of the project with their daemons, and the control daemons of others.
func (s Service) Read(ctx context.Context) (resource.MPSService, error) {
	all := resource.MPSService{Program: Program(), Dir: s.Dir}
	folders := slices.Clone(s.Known)
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return all, fmt.Errorf("looking for MPS daemons of the project: %w", err)
	}
	for _, e := range entries {
		folders = append(folders, filepath.Join(s.Dir, e.Name()))
	}
	slices.Sort(folders)
	running := processes()
	all.Own = s.daemons(ctx, all.Program, slices.Compact(folders), running)
	for _, p := range running {
		own := slices.ContainsFunc(all.Own, func(d resource.MPSDaemon) bool { return d.Pipes() == p.pipe })
		if p.control && !own {
			all.Foreign = append(all.Foreign, resource.ForeignDaemon{PID: p.pid, User: p.user(), Pipe: p.pipe, GPUs: p.visible})
		}
	}
	return all, nil
}

// daemons reads those of the folders that exist, all at once: each may be silent for its time.
func (s Service) daemons(ctx context.Context, program string, folders []string, running []process) []resource.MPSDaemon {
	there := prose.Only(folders, func(folder string) bool { _, err := os.Stat(folder); return err == nil })
	all := append([]resource.MPSDaemon(nil), make([]resource.MPSDaemon, len(there))...) // nil without any
	var asked sync.WaitGroup
	for i, folder := range there {
		asked.Go(func() { all[i] = s.daemon(ctx, program, folder, running) })
	}
	asked.Wait()
	return all
}

// daemon reads what the daemon of a folder has set.
func (s Service) daemon(ctx context.Context, program, folder string, running []process) resource.MPSDaemon {
	d := resource.MPSDaemon{MPS: resource.MPS{Folder: folder}}
	i := slices.IndexFunc(running, func(p process) bool { return p.control && p.pipe == d.Pipes() })
	if i < 0 {
		return d
	}
	d.Running, d.Unasked = true, program == ""
	if d.Unasked {
		return d
	}
	var err error
	if d.Percent, d.MemoryMiB, err = defaults(ctx, program, folder, strings.Count(running[i].visible, ",")+1); err != nil {
		d.Silent = err.Error()
	}
	return d
}

// ownFolder is the form of the folders that cosplay makes for its daemons.
var ownFolder = pattern.Of(`^/(.+/)?cosplay/mps/[0-9a-f]{8}/[0-9a-f]{8}$`)

// check refuses a folder that the state names and cosplay did not make: it is neither written nor removed, nor are
// processes ended that use it.
func (s Service) check(folder string) error {
	refuse := func(why string) error {
		return prose.Advice{What: fmt.Sprintf("%s is not the folder of an MPS daemon of cosplay: %s", folder, why), Fix: "restore the state from its backup, or correct the path there"}
	}
	if filepath.Clean(folder) != folder || !ownFolder().MatchString(folder) {
		return refuse("its path has another form")
	}
	info, err := os.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	owner := os.Geteuid()
	if s.As != nil {
		owner = int(s.As.Uid)
	}
	if uid := int(info.Sys().(*syscall.Stat_t).Uid); !info.IsDir() || uid != owner {
		return refuse(fmt.Sprintf("it is not a folder of the user with ID %d", owner))
	}
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if at := filepath.Join(folder, e.Name()); at != (resource.MPS{Folder: folder}).Pipes() && at != (resource.MPS{Folder: folder}).Logs() {
			return refuse("it has " + e.Name())
		}
	}
	return err
}

// Run starts the daemon of a GPU or a MIG slice by its UUID, unless it runs, and sets its defaults. One that does not
// answer is replaced, and one that serves a slice which was lost.
func (s Service) Run(ctx context.Context, uuid string, want resource.MPS) error {
	if err := s.check(want.Folder); err != nil {
		return err
	}
	program := Program()
	if program == "" {
		return prose.Advice{What: "there is no " + resource.MPSControl, Fix: resource.InstallMPS}
	}
	others := func(p process) bool { return p.control && p.visible != uuid }
	_, _, silent := ask(ctx, program, want, "get_server_list")
	if errors.Is(silent, errBusy) {
		return fmt.Errorf("asking the MPS control daemon: %w", silent)
	}
	if silent != nil || slices.ContainsFunc(using(want), others) {
		if err := s.start(ctx, program, uuid, want); err != nil {
			return fmt.Errorf("starting the MPS control daemon: %w", err)
		}
	}
	if err := set(ctx, program, want); err != nil {
		return fmt.Errorf("setting the limits of the MPS control daemon: %w", err)
	}
	return nil
}

// start starts a daemon in an empty folder.
func (s Service) start(ctx context.Context, program, uuid string, want resource.MPS) error {
	if err := end(ctx, want); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(want.Folder), want.Folder, want.Pipes(), want.Logs()} {
		if err := s.makeDir(dir); err != nil {
			return err
		}
	}
	if err := empty(want.Pipes()); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, "-d")
	command.Dir = "/"
	command.Env = append(environment(want), "CUDA_VISIBLE_DEVICES="+uuid)
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.As}
	if text, err := command.CombinedOutput(); err != nil {
		return prose.Advice{What: fmt.Sprintf("%s -d: %v %s", resource.MPSControl, err, strings.TrimSpace(string(text))), Fix: "read " + filepath.Join(want.Logs(), "control.log")}
	}
	return wait(ctx, func() error {
		_, _, err := ask(ctx, program, want, "get_server_list")
		return err
	})
}

// makeDir makes a folder that only the user of the sessions can enter: the daemon lets everyone who can open its
// sockets use the GPU.
func (s Service) makeDir(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && s.As != nil {
		err = os.Lchown(dir, int(s.As.Uid), int(s.As.Gid))
	}
	return err
}

// empty removes the files of a daemon that has ended. The folder stays: containers have mounted it.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// Stop ends a daemon with its servers, and removes its folder.
func (s Service) Stop(ctx context.Context, m resource.MPS) error {
	if err := s.check(m.Folder); err != nil {
		return err
	}
	if err := end(ctx, m); err != nil {
		return err
	}
	if err := os.RemoveAll(m.Folder); err != nil {
		return fmt.Errorf("removing the folder of the MPS daemon: %w", err)
	}
	for dir := filepath.Dir(m.Folder); filepath.Base(dir) != "cosplay"; dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break // it has other daemons
		}
	}
	return nil
}

// end ends a daemon with its servers, by force if it does not end when it is asked.
func end(ctx context.Context, m resource.MPS) error {
	ended := func() error {
		if left := using(m); len(left) > 0 {
			return prose.Advice{What: fmt.Sprintf("process %d of the MPS daemon in %s does not end", left[0].pid, m.Folder), Fix: fmt.Sprintf("kill -9 %d", left[0].pid)}
		}
		return nil
	}
	if program := Program(); program != "" && ended() != nil && quit(ctx, program, m) == nil {
		_ = wait(ctx, ended) // else by force
	}
	for _, p := range using(m) {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	return wait(ctx, ended)
}

// wait tries until there is no error.
func wait(ctx context.Context, try func() error) error {
	over := time.Now().Add(startTime)
	for {
		err := try()
		if err == nil || ctx.Err() != nil || time.Now().After(over) {
			return err
		}
		time.Sleep(pollEvery)
	}
}

// set sets the defaults of a daemon, also for programs that connect to the servers it has.
func set(ctx context.Context, program string, want resource.MPS) error {
	var commands []string
	for device := range want.Devices() {
		commands = append(commands, fmt.Sprintf("set_default_device_pinned_mem_limit %d %dM", device, want.MemoryMiB))
	}
	servers, _, err := ask(ctx, program, want, "get_server_list")
	if err != nil {
		return err
	}
	if want.Percent > 0 {
		commands = append(commands, fmt.Sprintf("set_default_active_thread_percentage %d", want.Percent))
		for _, pid := range servers {
			commands = append(commands, fmt.Sprintf("set_active_thread_percentage %s %d", pid, want.Percent))
		}
	}
	if _, _, err := ask(ctx, program, want, commands...); err != nil {
		return err
	}
	now := resource.MPSDaemon{MPS: resource.MPS{Folder: want.Folder}, Running: true}
	if now.Percent, now.MemoryMiB, err = defaults(ctx, program, want.Folder, want.Devices()); err != nil {
		return err
	}
	if !now.Has(want) {
		return prose.Advice{What: fmt.Sprintf("the daemon has %d %% and %d MiB instead of %d %% and %d MiB", now.Percent, now.MemoryMiB, want.Percent, want.MemoryMiB),
			Fix: "read " + filepath.Join(want.Logs(), "control.log")}
	}
	return nil
}

// defaults are the limits of a daemon for programs that set none. Of different limits of its devices, memoryMiB is the
// least.
func defaults(ctx context.Context, program, folder string, devices int) (percent, memoryMiB int, err error) {
	var commands []string
	for device := range devices {
		commands = append(commands, fmt.Sprintf("get_default_device_pinned_mem_limit %d", device))
	}
	lines, share, err := ask(ctx, program, resource.MPS{Folder: folder}, commands...)
	if err != nil {
		return 0, 0, err
	}
	for _, line := range lines {
		if n, err := strconv.Atoi(strings.TrimRight(line, "GM")); err == nil {
			if strings.HasSuffix(line, "G") {
				n *= 1024
			}
			if memoryMiB == 0 || n < memoryMiB {
				memoryMiB = n
			}
		}
	}
	return int(share), memoryMiB, nil
}
