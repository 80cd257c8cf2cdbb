// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// parentMode makes this test program play the parent that gets killed.
const parentMode = "METALAW_ENV_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentMode); dir != "" {
		os.Exit(playParent(dir))
	}
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func playParent(dir string) int {
	p, err := startProcess("sleep", dir, "/bin/sleep", "600")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(p.cmd.Process.Pid)
	<-p.done
	return 0
}

func TestChildDiesWithItsKilledParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentMode+"="+t.TempDir())
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The child holds no pipe of the parent, so this waits for the parent alone.
	_, _ = io.Copy(io.Discard, stdout)
	_ = parent.Wait()

	if err := awaitGone(t.Context(), child); err != nil {
		t.Error(err)
	}
}

func TestProcessThatEndsEarlyFailsWithItsLastWords(t *testing.T) {
	p, err := startProcess("talker", t.TempDir(), "/bin/sh", "-c", "echo no such disk; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	err = p.awaitReady(t.Context(), time.Minute, func(context.Context) error { return errors.New("not yet") })
	for _, want := range []string{"talker", "exit status 3", "no such disk"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}

// awaitGone waits until no process has the id. A zombie nobody waited for counts as gone: in a
// container without an init process nobody ever collects it.
func awaitGone(ctx context.Context, pid int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return nil
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && strings.Contains(string(stat), ") Z ") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d is still there: %s", pid, stat)
		case <-tick.C:
		}
	}
}
