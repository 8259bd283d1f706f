package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
)

const (
	bringUpSessions = 7
	bringUpRounds   = 9
	rest            = time.Second // for the engine, which continues to clean up after a removal
	bringUpFleet    = `
host "lab" {
  simulate = "1 x h200"
  runtime  = "docker"
}
session "bringup" {
  count  = 7
  name = "cosplay-bringup-${count.index}"
  target = "2060"
  image  = "cosplay-test/debian"
  ssh {
    %s
  }
}
`
)

// BenchmarkBringUp compares a whole `cosplay apply` of seven containers, slices
// and settings included, with the same seven containers created straight through
// the engine: same image, mounts, ports, and both until ssh answers in all, if
// they have it. The rounds are interleaved; medians are compared.
func BenchmarkBringUp(b *testing.B) {
	b.Run("ssh", func(b *testing.B) { benchmarkBringUp(b, `authorized_keys = ["./key.pub"]`) })
	b.Run("plain", func(b *testing.B) { benchmarkBringUp(b, "enabled = false") })
}

func benchmarkBringUp(b *testing.B, ssh string) {
	if _, err := exec.Command("docker", "image", "inspect", "cosplay-test/debian").Output(); err != nil {
		b.Skip("there is no Docker engine with the test images: run scripts/test-images")
	}
	engine, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		b.Fatal(err)
	}
	defer engine.Close()
	dir := b.TempDir()
	cosplay := func(args ...string) time.Duration {
		c := exec.Command("cosplay", args...)
		c.Dir = dir
		begun := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		return time.Since(begun)
	}
	if err := os.WriteFile(filepath.Join(dir, "fleet.hcl"), fmt.Appendf(nil, bringUpFleet, ssh), 0o644); err != nil {
		b.Fatal(err)
	}
	newKey(b, dir)
	cosplay("apply", "--auto-approve")
	raw := sameAs(b, engine, dir)
	cosplay("destroy", "--auto-approve")
	var ours, theirs []time.Duration
	for range bringUpRounds {
		time.Sleep(rest)
		theirs = append(theirs, bringUp(b, engine, raw))
		time.Sleep(rest)
		ours = append(ours, cosplay("apply", "--auto-approve"))
		cosplay("destroy", "--auto-approve")
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	apply, api := ours[bringUpRounds/2], theirs[bringUpRounds/2]
	b.ReportMetric(float64(apply.Milliseconds()), "apply-ms")
	b.ReportMetric(float64(api.Milliseconds()), "api-ms")
	b.ReportMetric(float64(apply)/float64(api), "ratio")
	b.ReportMetric(0, "ns/op")
}

// sameAs takes over what cosplay's containers were created with; the folders
// that they mount are copied, since destroy removes them.
func sameAs(b *testing.B, engine *client.Client, dir string) []container.InspectResponse {
	folders := filepath.Join(dir, ".cosplay/sessions/default/lab.containers")
	kept := filepath.Join(dir, "kept")
	if out, err := exec.Command("cp", "-a", folders, kept).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	var all []container.InspectResponse
	for i := range bringUpSessions {
		c, err := engine.ContainerInspect(context.Background(), fmt.Sprintf("cosplay-bringup-%d", i))
		if err != nil {
			b.Fatal(err)
		}
		for n := range c.HostConfig.Mounts {
			m := &c.HostConfig.Mounts[n]
			m.Source = strings.Replace(m.Source, folders, kept, 1)
		}
		for label := range c.Config.Labels {
			delete(c.Config.Labels, label)
		}
		all = append(all, c)
	}
	return all
}

// bringUp creates containers, starts them and waits for ssh where they have it, as
// many at once as cosplay does, and removes them outside of the time taken.
func bringUp(b *testing.B, engine *client.Client, raw []container.InspectResponse) time.Duration {
	var (
		begun  = time.Now()
		group  sync.WaitGroup
		slots  = make(chan struct{}, max(4, 2*runtime.NumCPU()))
		failed = make(chan error, len(raw))
	)
	for i, c := range raw {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			failed <- start(engine, fmt.Sprintf("cosplay-bench-%d", i), c)
		})
	}
	group.Wait()
	took := time.Since(begun)
	for i := range raw {
		if err := engine.ContainerRemove(context.Background(), fmt.Sprintf("cosplay-bench-%d", i), container.RemoveOptions{Force: true}); err != nil {
			b.Error(err)
		}
		if err := <-failed; err != nil {
			b.Error(err)
		}
	}
	return took
}

func start(engine *client.Client, name string, c container.InspectResponse) error {
	ctx := context.Background()
	made, err := engine.ContainerCreate(ctx, c.Config, c.HostConfig, nil, nil, name)
	if err != nil {
		return err
	}
	if err := engine.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return err
	}
	if len(c.HostConfig.PortBindings) == 0 {
		return nil
	}
	address := "127.0.0.1:" + c.HostConfig.PortBindings["22/tcp"][0].HostPort
	for range 1000 {
		if conn, err := net.Dial("tcp", address); err == nil {
			banner := make([]byte, 4)
			_, err := io.ReadFull(conn, banner)
			conn.Close()
			if err == nil && string(banner) == "SSH-" {
				return nil
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("%s: ssh does not answer on %s", name, address)
}
