// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

// talk is a call of the program with a person at the terminal.
type talk struct {
	terminal *os.File
	cmd      *exec.Cmd
	mu       sync.Mutex
	text     strings.Builder
	done     chan struct{}
}

// talks calls the program at a terminal.
func (p person) talks(ctx context.Context, args ...string) *talk {
	GinkgoHelper()
	person, program := openTerminal()
	t := &talk{terminal: person, cmd: p.command(ctx, filepath.Join(folder, "metalaw"), args...), done: make(chan struct{})}
	t.cmd.Env = append(t.cmd.Env, "TERM=xterm", "NO_COLOR=")
	t.cmd.Stdin, t.cmd.Stdout, t.cmd.Stderr = program, program, program
	Expect(t.cmd.Start()).To(Succeed())
	Expect(program.Close()).To(Succeed())
	go func() {
		defer close(t.done)
		buffer := make([]byte, 4096)
		for {
			n, err := person.Read(buffer)
			t.mu.Lock()
			t.text.Write(buffer[:n])
			t.mu.Unlock()
			if err != nil {
				return // the program has ended, and with it the terminal's other side
			}
		}
	}()
	return t
}

// openTerminal makes a terminal: the person's side and the program's.
func openTerminal() (person, program *os.File) {
	GinkgoHelper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	Expect(err).NotTo(HaveOccurred())
	Expect(unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)).To(Succeed())
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	Expect(err).NotTo(HaveOccurred())
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	Expect(err).NotTo(HaveOccurred())
	return person, program
}

func (t *talk) heard() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

func (t *talk) awaits(words string) {
	GinkgoHelper()
	Eventually(t.heard).Should(ContainSubstring(words))
}

func (t *talk) answers(words string) {
	GinkgoHelper()
	_, err := t.terminal.WriteString(words + "\n")
	Expect(err).NotTo(HaveOccurred())
}

// ends waits for the program's exit code.
func (t *talk) ends() int {
	GinkgoHelper()
	err := t.cmd.Wait()
	<-t.done
	Expect(t.terminal.Close()).To(Succeed())
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	Expect(err).NotTo(HaveOccurred())
	return 0
}
