package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestKillAndReset: whenever apply or destroy is killed, and whatever is left of
// state and journal, reset leaves the host as it was.
func TestKillAndReset(t *testing.T) {
	t.Parallel()
	moments := 10
	if every {
		moments = 20
	}
	p := newProject(t, fleet)
	p.run("plan")
	before := p.hardware()
	begun := time.Now()
	p.run("apply", "--auto-approve")
	whole := time.Since(begun)
	p.run("reset", "-y")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	k := killer{project: p, random: rand.New(rand.NewPCG(seed, 1)), window: whole}
	rounds := 0
	for ; k.interrupted < moments && rounds < 10*moments; rounds++ {
		command := "apply"
		if rounds%2 == 1 {
			command = "destroy"
			p.run("apply", "--auto-approve")
		}
		k.kill(command, "--auto-approve")
		p.spoil(k.random)
		said := p.run("reset", "-y")
		if !bytes.Equal(p.hardware(), before) {
			t.Fatalf("the host is not as it was after\n%s\n%s", said, p.run("sim", "show"))
		}
		for _, pattern := range []string{".cosplay/sessions/*/*/*", ".cosplay/sim/lab/ledger/*", "cosplay.state.json", "*.journal", "*.backup"} {
			if left, _ := filepath.Glob(filepath.Join(p.dir, pattern)); len(left) > 0 {
				t.Fatalf("left after\n%s\n%v", said, left)
			}
		}
	}
	t.Logf("%d commands killed within %s, %d of them in the middle of a run", rounds, k.window, k.interrupted)
	if k.interrupted < moments/2 {
		t.Errorf("only %d of %d kills hit a run: the test proves too little", k.interrupted, rounds)
	}
}

// spoil damages or removes state, backup and journal, each by chance.
func (p project) spoil(random *rand.Rand) {
	p.t.Helper()
	for _, name := range []string{"cosplay.state.json", "cosplay.state.json.backup", "cosplay.state.json.journal"} {
		path := filepath.Join(p.dir, name)
		data, err := os.ReadFile(path)
		if err != nil || len(data) == 0 { // a kill between making a journal and its first line
			continue
		}
		switch random.IntN(5) {
		case 0:
			err = os.Remove(path)
		case 1:
			err = os.WriteFile(path, nil, 0o600)
		case 2:
			err = os.WriteFile(path, data[:len(data)/2], 0o600)
		case 3:
			data[random.IntN(len(data))] ^= 1 << random.IntN(8)
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}
