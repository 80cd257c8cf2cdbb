// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// runDir holds what belongs to this boot.
	runDir = "/run/metalprobe"
	// childName is what the child of the first process is called.
	childName = "metalprobe-machine"
	// program is this program, whatever the image calls it.
	program = "/proc/self/exe"
	// stopPatience is how long the child may take to stop a disk's erase before the power is cut.
	stopPatience = 10 * time.Second
	// syncPatience is how long the kernel may take to write what it holds.
	syncPatience = 5 * time.Second
	// childPause is the time before a child that could not be started is tried again.
	childPause = 30 * time.Second
)

// isInit says that the kernel started this process as the first of the machine. The first process of a container is not: its
// /proc is mounted.
func isInit() bool {
	if os.Getpid() != 1 {
		return false
	}
	_, err := os.Stat("/proc/self")
	return err != nil
}

// supervise is the first process. It never returns.
func supervise(version string) {
	if err := mountAll(); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "metalprobe: %v\r\n", err) // there may be no console yet
	}
	c := newConsole(uptime, consoles()...)
	c.say("init", "metalprobe %s on Linux %s", version, filepath.Base(modulesDir()))
	// Ctrl-Alt-Del sends SIGINT instead of a reset in the middle of a command to a disk.
	_ = os.WriteFile("/proc/sys/kernel/ctrl-alt-del", []byte("0"), 0o600)
	power := make(chan string, 1)
	go watchButtons(power)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGPWR)
	exits := make(chan exit, 8)
	go reap(exits)
	child := start(c)
	for {
		select {
		case e := <-exits:
			if e.pid == child {
				child = 0
				c.say("init", "the agent ended (%s); waiting for power-off", e.how)
			}
		case <-time.After(childPause):
			if child < 0 {
				child = start(c)
			}
		case why := <-power:
			powerOff(c, why, child, exits)
		case s := <-signals:
			if s == unix.SIGINT {
				c.say("init", "Ctrl-Alt-Del is not served; use the power button")
				continue
			}
			powerOff(c, s.String(), child, exits)
		}
	}
}

// start starts the child, and returns its process ID, -1 where that failed.
func start(c *console) int {
	process, err := os.StartProcess(program, []string{childName}, &os.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		c.say("init", "cannot start the agent: %v; trying again in %s", err, childPause)
		return -1
	}
	pid := process.Pid
	_ = process.Release()
	return pid
}

// exit is how a process ended.
type exit struct {
	pid int
	how string
}

// reap takes the result of every process that ends, also of those that others left behind.
func reap(exits chan<- exit) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if pid > 0 {
			exits <- exit{pid: pid, how: how(status)}
			continue
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second): // a signal may stand for several processes
		}
	}
}

func how(status unix.WaitStatus) string {
	if status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}

// powerOff tells the child, waits until it stopped what it did on disks, and switches the machine off.
func powerOff(c *console, why string, child int, exits <-chan exit) {
	c.say("init", "%s: stopping", why)
	if child > 0 {
		_ = unix.Kill(child, unix.SIGTERM)
		limit := time.After(stopPatience)
		for waiting := true; waiting; {
			select {
			case e := <-exits:
				waiting = e.pid != child
			case <-limit:
				c.say("init", "the agent did not stop within %s", stopPatience)
				waiting = false
			}
		}
	}
	synced := make(chan struct{})
	go func() { unix.Sync(); close(synced) }()
	select {
	case <-synced:
	case <-time.After(syncPatience):
	}
	c.say("init", "power off")
	time.Sleep(200 * time.Millisecond) // for the console
	_ = os.WriteFile("/proc/sys/kernel/ctrl-alt-del", []byte("1"), 0o600)
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		c.say("init", "power off: %v; cut the power", err)
	}
}

// consoles are all consoles of the kernel: /dev/console is only the last one that the command line names.
func consoles() []io.Writer {
	active, _ := os.ReadFile("/sys/class/tty/console/active") // none is told of in a machine without terminals
	var found []io.Writer
	for _, name := range strings.Fields(string(active)) {
		if f, err := os.OpenFile("/dev/"+name, os.O_WRONLY|unix.O_NOCTTY, 0); err == nil {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		found = append(found, os.Stderr)
	}
	return found
}

// buttonScan is how often new input devices are looked for.
const buttonScan = 2 * time.Second

// watchButtons says when a power button is pressed. Input devices appear when their modules are loaded.
func watchButtons(pressed chan<- string) {
	var known sync.Map
	for {
		devices, _ := filepath.Glob("/dev/input/event*") // the pattern is right
		for _, device := range devices {
			if _, seen := known.LoadOrStore(device, true); seen {
				continue
			}
			go func() {
				defer known.Delete(device)
				watchButton(device, pressed)
			}()
		}
		time.Sleep(buttonScan)
	}
}

// watchButton reads one input device until it goes away.
func watchButton(device string, pressed chan<- string) {
	f, err := os.Open(device)
	if err != nil {
		time.Sleep(buttonScan)
		return
	}
	defer func() { _ = f.Close() }()
	event := make([]byte, 24*64)
	for {
		n, err := f.Read(event)
		if err != nil {
			return
		}
		for ; n >= 24; n -= 24 {
			if isPowerKey(event[n-24 : n]) {
				select {
				case pressed <- "power button":
				default:
				}
			}
		}
	}
}

// isPowerKey reads one input event of a 64-bit kernel: a time of 16 bytes, kind, code, value.
func isPowerKey(event []byte) bool {
	const keyEvent, keyPower, down = 1, 116, 1
	return binary.NativeEndian.Uint16(event[16:]) == keyEvent && binary.NativeEndian.Uint16(event[18:]) == keyPower &&
		binary.NativeEndian.Uint32(event[20:]) == down
}
