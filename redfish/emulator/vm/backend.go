// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
)

// Chain is how a machine boots from the network.
type Chain string

const (
	// Direct, the default, lets the host read the boot provider's iPXE script and give kernel, initramfs and command line to QEMU.
	Direct Chain = ""
	// IPXE lets the iPXE of the machine's first network card ask the boot provider itself.
	IPXE Chain = "ipxe"
)

// Options say how virtual machines run.
type Options struct {
	// ProviderURL is where the boot provider is: an iPXE script of a machine is at /ipxe/UUID below it. Where it is on this host, name
	// it by 127.0.0.1: guests reach that as GuestHost.
	ProviderURL string
	// HTTP asks the boot provider. Nil means a client without proxy.
	HTTP *http.Client
	// Directory keeps consoles, sockets and the images of boots. Keep it short: sockets below it have at most 107 bytes.
	Directory string
	// QEMU is the program (default qemu-system-x86_64), Firmware the UEFI firmware for virtual media.
	QEMU, Firmware string
	// Accelerator is tcg or kvm; empty means kvm where a guest has booted with it within five seconds, else tcg.
	Accelerator string
	// Log receives a line for each start and end; nil discards.
	Log *slog.Logger
}

// Backend runs virtual machines.
type Backend struct {
	options Options
	fetcher fetcher

	mu          sync.Mutex
	accelerator string
}

// New checks the options.
func New(options Options) (*Backend, error) {
	options.QEMU = cmp.Or(options.QEMU, "qemu-system-x86_64")
	options.Firmware = cmp.Or(options.Firmware, "/usr/share/OVMF/OVMF_CODE_4M.fd")
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if _, err := exec.LookPath(options.QEMU); err != nil {
		return nil, fmt.Errorf("virtual machines need QEMU: %w: install qemu-system-x86", err)
	}
	if options.Directory == "" {
		return nil, errors.New("virtual machines: Directory is empty: name a folder for consoles and sockets")
	}
	images := filepath.Join(options.Directory, "images")
	if err := os.MkdirAll(images, 0o750); err != nil {
		return nil, err
	}
	return &Backend{options: options, accelerator: options.Accelerator, fetcher: newFetcher(options.HTTP, images)}, nil
}

// Machine describes a virtual machine for Fleet.Add.
func (b *Backend) Machine(d Description) (emulator.MachineSpec, *VM) {
	machine := &VM{backend: b, description: d}
	spec := d.spec()
	spec.Guest = machine
	return spec, machine
}

// VM is one virtual machine. It is the guest of its emulated machine.
type VM struct {
	backend     *Backend
	description Description

	mu      sync.Mutex
	boots   int
	monitor *monitor
	pid     int
}

// Description is what the machine was made from.
func (v *VM) Description() Description { return v.description }

// Console is what the machine's serial port said in its latest boot.
func (v *VM) Console() string {
	v.mu.Lock()
	boots := v.boots
	v.mu.Unlock()
	return v.ConsoleOf(boots)
}

// ConsoleOf is what the serial port said in one boot, counted from 1.
func (v *VM) ConsoleOf(boot int) string {
	text, err := os.ReadFile(v.serialFile(boot))
	if err != nil {
		return ""
	}
	return string(text)
}

// Boots counts how often QEMU was started.
func (v *VM) Boots() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.boots
}

// PID is the process of QEMU; 0 while none runs.
func (v *VM) PID() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pid
}

func (v *VM) serialFile(boot int) string { return v.file(fmt.Sprintf("console-%d.log", boot)) }

func (v *VM) file(name string) string {
	return filepath.Join(v.backend.options.Directory, v.description.Name+"-"+name)
}

// PoweredOn runs QEMU until the machine is switched off or the guest ends.
func (v *VM) PoweredOn(ctx context.Context, m *emulator.Machine, boot emulator.BootSelection) {
	log := v.backend.options.Log.With("machine", m.Name(), "boot", boot.Boot, "target", boot.Target)
	began := time.Now()
	rebooted, err := v.run(ctx, m, boot)
	switch {
	case ctx.Err() != nil:
		log.Info("switched off", "after", time.Since(began))
	case err != nil:
		// As a machine that finds nothing to boot: it stays on.
		log.Error("does not boot", "error", err)
	default:
		log.Info("guest ended", "rebooted", rebooted, "after", time.Since(began))
		m.GuestEnded(ctx, rebooted)
	}
}

// PoweredOff has nothing to do: the end of PoweredOn's context was the end of QEMU.
func (v *VM) PoweredOff(*emulator.Machine) {}

// Press pushes the machine's ACPI power button.
func (v *VM) Press(*emulator.Machine) {
	if err := v.tell("system_powerdown"); err != nil {
		v.backend.options.Log.Warn("power button not pressed", "machine", v.description.Name, "error", err)
	}
}

// Freeze stops the machine's processors, as a machine does that hangs. It stays on until it is switched off.
func (v *VM) Freeze() error { return v.tell("stop") }

// Thaw lets a frozen machine go on.
func (v *VM) Thaw() error { return v.tell("cont") }

func (v *VM) tell(command string) error {
	v.mu.Lock()
	monitor := v.monitor
	v.mu.Unlock()
	if monitor == nil {
		return fmt.Errorf("machine %s: QEMU does not listen: switch the machine on first", v.description.Name)
	}
	return monitor.send(command)
}

// run starts QEMU and waits for its end; rebooted says that the guest ended by a reset.
func (v *VM) run(ctx context.Context, m *emulator.Machine, boot emulator.BootSelection) (rebooted bool, err error) {
	from, err := v.choose(ctx, m, boot)
	if err != nil {
		return false, err
	}
	defer from.remove()
	accelerator := v.backend.accelerate(ctx, from.kernel)
	v.mu.Lock()
	v.boots++
	serial := v.serialFile(v.boots)
	v.mu.Unlock()
	on := files{serial: serial, qmp: v.file("qmp"),
		frames:      func(nic int) string { return v.file(fmt.Sprintf("wire%d", nic)) },
		guestFrames: func(nic int) string { return v.file(fmt.Sprintf("guestwire%d", nic)) }}
	identity := m.Identity()
	identity.UUID = m.InBandUUID()
	running, stop := context.WithCancel(ctx)
	defer stop()
	for i, nic := range v.description.NICs {
		if nic.Neighbour == nil {
			continue
		}
		for _, socket := range []string{on.frames(i), on.guestFrames(i)} {
			if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
				return false, err
			}
		}
		if err := nic.Neighbour.announce(running, on.frames(i), on.guestFrames(i)); err != nil {
			return false, err
		}
	}
	return v.execute(running, on, v.description.flags(identity, accelerator, on, from))
}

// execute runs QEMU and listens to its monitor.
func (v *VM) execute(ctx context.Context, on files, flags []string) (rebooted bool, err error) {
	if err := os.Remove(on.qmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	var said strings.Builder
	command := exec.CommandContext(ctx, v.backend.options.QEMU, flags...)
	alone(command)
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		return false, err
	}
	dialing, cancel := context.WithCancel(ctx)
	dialed := make(chan *monitor, 1)
	go func() {
		m, err := dial(dialing, on.qmp)
		if err != nil {
			m = nil
		}
		v.mu.Lock()
		v.monitor = m
		v.mu.Unlock()
		dialed <- m
	}()
	v.mu.Lock()
	v.pid = command.Process.Pid
	v.mu.Unlock()
	err = command.Wait()
	cancel()
	m := <-dialed
	v.mu.Lock()
	v.monitor, v.pid = nil, 0
	v.mu.Unlock()
	if m != nil {
		rebooted = m.close()
	}
	if err != nil {
		err = fmt.Errorf("QEMU of %s: %w: %s", v.description.Name, err, strings.TrimSpace(said.String()))
	}
	return rebooted, err
}
