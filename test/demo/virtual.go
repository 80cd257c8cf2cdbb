// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/metalaw/metalaw/redfish/emulator"
	"github.com/metalaw/metalaw/redfish/emulator/serve"
	"github.com/metalaw/metalaw/redfish/emulator/vm"
	"github.com/metalaw/metalaw/test/bootprovider"
	"github.com/metalaw/metalaw/test/vm/images"
)

// virtualMachines is how many there are: no more than a small host has processors.
const virtualMachines = 2

// virtual is what there is of virtual machines.
type virtual struct {
	machines []*vm.VM
}

// bootImages are what virtual machines download; nil where servers are emulated.
func (w *world) bootImages() (map[string]bootprovider.Image, error) {
	if !w.options.vm {
		return nil, nil
	}
	return images.Load(w.root, w.dir)
}

// startVirtual makes the virtual machines, with disks of three kinds, and their BMCs in this process.
func (w *world) startVirtual(ctx context.Context) error {
	dir := filepath.Join(w.dir, "vm")
	backend, err := vm.New(vm.Options{ProviderURL: w.providerURL, Directory: dir, Log: slog.New(slog.NewTextHandler(w.log, nil))})
	if err != nil {
		return err
	}
	w.virtual = &virtual{}
	var specs []emulator.MachineSpec
	for i := range virtualMachines {
		d := vm.Description{
			Name: fmt.Sprintf("machine-%03d", i), UUID: fmt.Sprintf("4c4c4544-0042-4a10-8051-%012d", i+1), SerialNumber: fmt.Sprintf("VM%05d", i),
			Manufacturer: "Metalaw", Model: "Virtual R1", NICs: []vm.NIC{{MACAddress: fmt.Sprintf("52:54:00:00:01:%02x", i)}},
		}
		for _, bus := range []vm.Bus{vm.NVMe, vm.Virtio, vm.ATA} {
			disk := vm.Disk{Bus: bus, Serial: fmt.Sprintf("%s-%d", bus, i), SizeBytes: 64 << 20}
			disk.Path = filepath.Join(dir, disk.Serial+".img")
			if err := vm.CreateDisk(disk.Path, disk.SizeBytes); err != nil {
				return err
			}
			d.Disks = append(d.Disks, disk)
		}
		spec, machine := backend.Machine(d)
		specs = append(specs, spec)
		w.virtual.machines = append(w.virtual.machines, machine)
	}
	w.machines.url = "http://" + local(w.ports.control)
	go func() {
		err := serve.Run(w.life, serve.Options{Specs: specs, Addresses: w.ports.bmcs.String(), BasePort: bmcPort, EndpointsOut: w.endpointsFile,
			ControlAddress: local(w.ports.control), PowerDelay: powerDelay, BootDelay: bootDelay}, w.log)
		if err != nil && w.life.Err() == nil {
			w.report(err)
		}
	}()
	for {
		_, err := w.machines.all(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case err := <-w.trouble:
			return err
		case <-time.After(lookAgain):
		}
	}
}

// virtualManager are the flags of a manager whose agents run in virtual machines: they reach this host by another address.
func (w *world) virtualManager() ([]string, error) {
	dir := filepath.Join(w.dir, "registry")
	if err := certify(dir, net.ParseIP(vm.GuestHost)); err != nil {
		return nil, fmt.Errorf("certificate of the registry: %w", err)
	}
	return []string{
		fmt.Sprintf("--registry-url=https://%s:%d", vm.GuestHost, w.ports.registry),
		"--registry-cert-dir=" + dir,
		"--probe-image=" + images.Probe + ":1",
		"--steady-poll=2s",
	}, nil
}

// certify makes a certificate for an address, signed by itself, under the names that the manager wants.
func certify(dir string, address net.IP) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "metalaw demo"}, IPAddresses: []net.IP{address},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	return errors.Join(
		os.MkdirAll(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "tls.crt"), public, 0o600),
		os.WriteFile(filepath.Join(dir, "ca.crt"), public, 0o600),
		os.WriteFile(filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
}
