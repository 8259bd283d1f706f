package boot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cosplay/internal/initd"
	"cosplay/internal/initd/environ"
	"cosplay/internal/initd/inittest"
	"cosplay/internal/need"
)

// The test binary also creates containers: as the first process of new namespaces it mounts what Docker would, and
// becomes cosplay-init.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "contain" {
		fmt.Fprintln(os.Stderr, contain(os.Args[2]))
		os.Exit(99)
	}
	code := m.Run()
	for _, dir := range scratch {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func contain(root string) error {
	return errors.Join(
		syscall.Mount("proc", root+"/proc", "proc", 0, ""),
		syscall.Mount("devpts", root+"/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666"),
		os.Symlink("pts/ptmx", root+"/dev/ptmx"),
		syscall.Mount("/dev/null", root+"/dev/null", "", syscall.MS_BIND, ""),
		syscall.Mount("/dev/tty", root+"/dev/tty", "", syscall.MS_BIND, ""),
		syscall.Chroot(root), os.Chdir("/"),
		syscall.Exec(initd.Program, initd.Entrypoint(), os.Environ()))
}

const (
	odd    = "it's \"odd\"\n # and two  lines"
	secret = "do-not-tell-this"
)

// image is the content of a container's image.
type image struct {
	applets  []string          // programs of busybox
	files    map[string]string // by path
	programs map[string]string // as files, but mode 0755
	env      []string
}

var small = image{
	applets: []string{"sh", "id", "env", "sleep", "ps", "true", "stat"},
	files: map[string]string{
		"/etc/passwd":             "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n",
		"/etc/group":              "root:x:0:\nwww-data:x:33:\nvideo:x:44:jane\n",
		"/etc/profile":            "PATH=/usr/bin:/bin\nfor f in /etc/profile.d/*.sh; do . $f; done\n",
		"/etc/profile.d/other.sh": "true\n",
	},
	env: []string{"PATH=/opt/conda/bin:/bin", "ODD=" + odd, "SEED=image", "HOME=/nowhere"},
}

func (i image) unpack(t *testing.T, root string) {
	t.Helper()
	for _, dir := range []string{"proc", "dev/pts", "bin", "run/cosplay", "workspace"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"/dev/null": "", "/dev/tty": ""}
	for path, content := range i.files {
		files[path] = content
	}
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range i.programs {
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for n, name := range i.applets {
		path, first := filepath.Join(root, "bin", name), filepath.Join(root, "bin", i.applets[0])
		if n == 0 {
			copyProgram(t, busybox, path)
		} else if err := os.Link(first, path); err != nil {
			t.Fatal(err)
		}
	}
}

// built is the path of the program itself, made once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cosplay-init-built-")
	if err != nil {
		return "", err
	}
	scratch = append(scratch, dir)
	cmd := exec.Command("go", "build", "-trimpath", "-o", dir, "cosplay/cmd/cosplay-init")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, "cosplay-init"), nil
})

// scratch is removed after all tests.
var scratch []string

// copyProgram copies in another process: a program that this process has open for writing cannot be started, and a
// concurrent fork may keep it open.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

type container struct {
	inittest.Client
	root   string
	cmd    *exec.Cmd
	stdout inittest.Output
	stderr inittest.Output
	ended  chan struct{}
}

// start runs a container. change fits the config to the case; it may be nil.
func start(t *testing.T, i image, change func(*initd.Config)) *container {
	t.Helper()
	need.Root(t, "ssh", "busybox", "nsenter")
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := inittest.Dir(t)
	c := &container{root: filepath.Join(dir, "root"), ended: make(chan struct{})}
	i.unpack(t, c.root)
	_, _, line := inittest.Key(t, dir, "id")
	_, hostKey, _ := inittest.Key(t, filepath.Join(c.root, initd.Dir), "host_key")
	port := freePort(t)
	config := initd.Config{
		User:           initd.User{Name: "jane", UID: 1234, GID: 1234},
		AuthorizedKeys: []string{line},
		SSH:            initd.SSH{Enabled: true, Port: port},
		Env:            map[string]string{"SEED": "session"},
		Secrets:        map[string]string{"TOKEN": secret},
	}
	if change != nil {
		change(&config)
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.root, initd.ConfigPath), data, 0o600); err != nil {
		t.Fatal(err)
	}
	c.hide(t, config)
	copyProgram(t, program, filepath.Join(c.root, initd.Program))
	c.Client = inittest.NewClient(t, dir, config.User.Name, "id", port, hostKey.PublicKey())
	c.cmd = exec.Command("/proc/self/exe", "contain", c.root)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = i.env, &c.stdout, &c.stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.cmd.Wait(); close(c.ended) }()
	t.Cleanup(func() { c.cmd.Process.Kill(); <-c.ended })
	if config.SSH.Enabled && len(config.Command) == 0 {
		c.waitForBanner(t)
	}
	return c
}

// hide writes the sensitive values where cosplay does.
func (c *container) hide(t *testing.T, config initd.Config) {
	t.Helper()
	files, err := environ.Private(config.Secrets)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(c.root, initd.PrivateDir)
	err = os.Mkdir(dir, 0o700)
	for name, content := range files {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.WriteFile(path, content, 0o400), os.Chown(path, int(config.User.UID), int(config.User.GID)))
	}
	if err = errors.Join(err, os.Chown(dir, int(config.User.UID), int(config.User.GID))); err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (c *container) waitForBanner(t *testing.T) {
	t.Helper()
	inittest.Soon(t, "an ssh banner", func() bool { return c.banner() == "SSH-" })
}

// banner returns the first bytes that the ssh server sends, "" if it sends none.
func (c *container) banner() string {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", c.Port))
	if err != nil {
		return ""
	}
	defer conn.Close()
	banner := make([]byte, 4)
	n, _ := conn.Read(banner)
	return string(banner[:n])
}

// exec is docker exec: a process of the image's environment, as root.
func (c *container) exec(i image, argv ...string) *exec.Cmd {
	args := append([]string{"-t", fmt.Sprint(c.cmd.Process.Pid), "-m", "-p", "--root", "--wd"}, initd.Exec(initd.How{}, argv...)...)
	cmd := exec.Command("nsenter", args...)
	cmd.Env = append([]string{}, i.env...)
	return cmd
}

func (c *container) code(t *testing.T) int {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(2 * time.Minute):
		t.Fatalf("the container does not end; it said %s", c.stderr.String())
	}
	return c.cmd.ProcessState.ExitCode()
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %v: %s", cmd.Args, err, errs.String())
	}
	return string(out)
}

// grep lists the files of a container that hold a text.
func (c *container) grep(t *testing.T, text string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(c.root, func(path string, entry fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, c.root)
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/dev/") {
			return nil
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(text)) {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
