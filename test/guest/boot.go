// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	policyv1alpha1 "github.com/metalaw/metalaw/api/policy/v1alpha1"
	"github.com/metalaw/metalaw/metalprobe"
	"github.com/metalaw/metalaw/metalprobe/erasure"
)

const (
	// maxBootData bounds what is read of an answer.
	maxBootData = 4 << 20
	// fetchTimeout bounds one question.
	fetchTimeout = 10 * time.Second
	// emulatedLimit bounds the erase of an emulated disk, which takes as long as it was told to.
	emulatedLimit = 24 * time.Hour
)

// fetch asks for what to boot until there is an answer or the machine is switched off, as firmware does.
func (g *Guests) fetch(ctx context.Context, machine Machine, from Source) (data bootData, err error) {
	err = g.insist(ctx, machine.UUID, func() error {
		if from == FromUEFIHTTP {
			data, err = g.askUEFI(ctx, machine)
		} else {
			data, err = g.askPXE(ctx, machine)
		}
		return err
	})
	return data, err
}

// askPXE asks for an iPXE script, with the UUID in lower case as iPXE spells it.
func (g *Guests) askPXE(ctx context.Context, machine Machine) (bootData, error) {
	uuid := strings.ToLower(machine.UUID)
	script, _, err := g.get(ctx, g.provider()+"/ipxe/"+uuid, "")
	if err != nil {
		return bootData{}, err
	}
	return readScript(string(script), uuid)
}

// askUEFI asks as a DHCP server asks for a machine, which it knows by its link-layer address. The UKI asks for the ignition
// of the machine's own UUID; the default UKI, which comes without one, asks for none of ours.
func (g *Guests) askUEFI(ctx context.Context, machine Machine) (bootData, error) {
	var addresses []string
	for _, port := range machine.Data.NetworkInterfaces {
		addresses = append(addresses, port.MACAddress)
	}
	text, _, err := g.get(ctx, g.provider()+"/httpboot", strings.Join(addresses, ", "))
	if err != nil {
		return bootData{}, err
	}
	var answer struct {
		UKIURL     string
		SystemUUID string
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return bootData{}, fmt.Errorf("httpboot: %w", err)
	}
	if answer.SystemUUID == "" {
		return bootData{}, errors.New("httpboot: the boot operator does not know the machine's addresses; it gives the default UKI")
	}
	image, err := imageOf(answer.UKIURL)
	return bootData{Image: image, IgnitionURL: g.provider() + "/ignition/" + strings.ToLower(machine.UUID)}, err
}

// errIgnition says that a machine cannot go on: Ignition has failed.
var errIgnition = errors.New("ignition failed")

// ignite fetches the ignition as Ignition does: it asks again while nobody answers or the answer is 500 and above, and gives up
// for ever at any other.
func (g *Guests) ignite(ctx context.Context, machine Machine, data bootData) (text []byte, err error) {
	if data.IgnitionURL == "" {
		return nil, nil
	}
	var refused error
	err = g.insist(ctx, machine.UUID, func() error {
		var status int
		text, status, err = g.get(ctx, data.IgnitionURL, "")
		if err != nil && status != 0 && status < http.StatusInternalServerError {
			refused = fmt.Errorf("%w: %w", errIgnition, err)
			return nil
		}
		return err
	})
	return text, errors.Join(refused, err)
}

// insist tries until it works or the machine is switched off.
func (g *Guests) insist(ctx context.Context, uuid string, try func() error) error {
	for delay := g.options.Retry.First; ; delay = min(2*delay, g.options.Retry.Max) {
		err := try()
		if err == nil {
			return nil
		}
		g.options.Log.Debug("no boot data", "server", uuid, "error", err)
		if !metalprobe.Wait(ctx, delay/2+rand.N(delay/2+1)) {
			return ctx.Err()
		}
	}
}

func (g *Guests) provider() string { return strings.TrimSuffix(g.options.ProviderURL, "/") }

// get asks once; forwarded is for whom somebody asks, where that is not the machine itself. The status is 0 where none came.
func (g *Guests) get(ctx context.Context, address, forwarded string) (text []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	if forwarded != "" {
		request.Header.Set("X-Forwarded-For", forwarded)
	}
	response, err := g.options.HTTP.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(response.Body, maxBootData))
	if err != nil {
		return nil, 0, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, response.StatusCode, fmt.Errorf("boot provider: %s: status %d: %.256s", request.URL.Path, response.StatusCode, text)
	}
	return text, response.StatusCode, nil
}

// runAgent is the agent, until the machine is switched off or the agent gives up.
func (g *Guests) runAgent(ctx context.Context, machine Machine, data bootData, config metalprobe.Config) {
	kind := KindProbe
	if config.Purpose == metalprobe.PurposeWipe {
		kind = KindWipe
	}
	g.record(ctx, Boot{UUID: machine.UUID, Kind: kind, Image: data.Image, Configuration: data.SBC, Entry: config.Entry})
	if !metalprobe.Wait(ctx, g.options.AgentDelay) {
		return
	}
	shared, err := g.client(config.CABundle)
	if err != nil {
		g.options.Log.Error("agent cannot start", "server", machine.UUID, "error", err)
		return
	}
	if g.options.NoToken {
		config.Token = ""
	}
	agent := &metalprobe.Agent{
		Registry: &metalprobe.Client{BaseURL: config.RegistryURL, Token: config.Token, HTTP: shared, AgentVersion: "guest"},
		UUID:     config.ServerUUID,
		Purpose:  config.Purpose,
		Collect:  func(context.Context) (metalprobe.Data, error) { return machine.describe(time.Now()), nil },
		Disks: func(context.Context) ([]metalprobe.Disk, []policyv1alpha1.SkippedDisk, error) {
			toErase, skipped := machine.disks(config.Wipe)
			return toErase, skipped, nil
		},
		Hidden:   func(context.Context) ([]policyv1alpha1.HiddenStorage, bool) { return machine.Data.Hidden, true },
		Wipe:     config.Wipe,
		Interval: g.options.Interval,
		Log:      g.options.Log,
	}
	// The agent has logged why it stopped.
	_ = agent.Run(ctx)
}

// describe is what the agent finds, with the time at which it looks, as the real agent says it: metal-operator reads a report
// without one as a report that has not come. It shares nothing that the agent could change.
func (m Machine) describe(now time.Time) metalprobe.Data {
	data := m.Data
	data.Timestamp = metalprobe.Timestamp{Time: now}
	data.Storage, data.HiddenKnown = slices.Clone(data.Storage), true
	if len(data.Storage) == 0 {
		for _, disk := range m.Disks {
			info, verdict := disk.Info(), judge(disk, false)
			info.Removable, info.Transport = verdict.Standing == metalprobe.DiskNotFixed, verdict.Transport
			info.Content, info.ContentFound = "", ""
			if judge(disk, true).Standing == metalprobe.DiskOurs { // the agent reads no other
				info.Content, info.ContentFound = disk.Content()
			}
			data.Storage = append(data.Storage, info)
		}
	}
	return data
}

// disks lists what a wipe has to erase and what it leaves alone, as the agent on a real machine does.
func (m Machine) disks(policy *metalprobe.WipePolicy) (toErase []metalprobe.Disk,
	skipped []policyv1alpha1.SkippedDisk) {
	removable := policy != nil && policy.Removable == metalprobe.RemovableErase
	for _, disk := range m.Disks {
		info, verdict := disk.Info(), judge(disk, removable)
		if verdict.Standing == metalprobe.DiskNotFixed {
			skipped = append(skipped, metalprobe.Skip(info, verdict))
			continue
		}
		toErase = append(toErase, eraser{disk: disk, info: info, verdict: verdict, removable: removable})
	}
	return toErase, skipped
}

func judge(disk Disk, eraseRemovable bool) metalprobe.Verdict {
	facts := disk.Facts()
	facts.EraseRemovable = eraseRemovable
	return metalprobe.JudgeDisk(facts)
}

// eraser makes an emulated disk look like a real one to the agent.
type eraser struct {
	disk    Disk
	info    policyv1alpha1.BlockDevice
	verdict metalprobe.Verdict
	// removable says that removable media are erased.
	removable bool
}

func (e eraser) Info() policyv1alpha1.BlockDevice { return e.info }

func (e eraser) Verdict() metalprobe.Verdict { return e.verdict }

// Lane is empty: emulated disks share no adapter.
func (e eraser) Lane() string { return "" }

// Erase empties the disk. Its verification is honest: no byte is read, because an emulated disk has none.
func (e eraser) Erase(ctx context.Context, order metalprobe.EraseOrder) (metalprobe.EraseOutcome, error) {
	if now := judge(e.disk, e.removable); now.Standing != metalprobe.DiskOurs {
		return metalprobe.EraseOutcome{}, fmt.Errorf("%s not erased: %s", e.info.Path, now.Reason)
	}
	order.Expect(erasure.MethodEmulated, emulatedLimit)
	step := policyv1alpha1.EraseStep{Method: erasure.MethodEmulated, Result: policyv1alpha1.EraseSucceeded}
	err := e.disk.Erase(ctx)
	if err != nil {
		step.Result, step.Answer = policyv1alpha1.EraseFailed, err.Error()
	}
	outcome := metalprobe.EraseOutcome{Steps: []policyv1alpha1.EraseStep{step}}
	outcome.Method = erasure.MethodOf(outcome.Steps)
	if err == nil {
		outcome.Verification, err = e.Recheck(ctx)
	}
	outcome.Term = erasure.Term(metalprobe.MediaOf(e.info, e.verdict), outcome.Steps, outcome.Verification, e.verdict.OverwriteOnly)
	return outcome, err
}

// Recheck asks the disk whether it holds data.
func (e eraser) Recheck(context.Context) (*policyv1alpha1.EraseVerification, error) {
	verification := &policyv1alpha1.EraseVerification{Kind: policyv1alpha1.VerifiedZeros, Passed: e.disk.Erased(),
		Limits: "the disk is emulated: it was asked whether it holds data, and no byte was read"}
	if !verification.Passed {
		return verification, fmt.Errorf("%s: data was found after the erase", e.info.Path)
	}
	return verification, nil
}
