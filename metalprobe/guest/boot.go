// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/metalaw/metalaw/metalprobe"
)

const (
	// maxBootData bounds what is read of an answer.
	maxBootData = 4 << 20
	// fetchTimeout bounds one question.
	fetchTimeout = 10 * time.Second
)

// bootData is the boot provider's answer.
type bootData struct {
	Image    string  `json:"image"`
	Ignition *string `json:"ignition"`
	// SBC names the boot configuration, as namespace/name.
	SBC string `json:"sbc"`
}

// fetch asks the boot provider until it answers or the machine is switched off.
func (g *Guests) fetch(ctx context.Context, uuid string) (bootData, error) {
	for delay := g.options.Retry.First; ; delay = min(2*delay, g.options.Retry.Max) {
		data, err := g.fetchOnce(ctx, uuid)
		if err == nil {
			return data, nil
		}
		g.options.Log.Debug("no boot data", "server", uuid, "error", err)
		if !pause(ctx, delay/2+rand.N(delay/2+1)) {
			return bootData{}, ctx.Err()
		}
	}
}

func (g *Guests) fetchOnce(ctx context.Context, uuid string) (bootData, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(g.options.ProviderURL, "/")+"/boot/"+uuid, http.NoBody)
	if err != nil {
		return bootData{}, err
	}
	response, err := g.options.HTTP.Do(request)
	if err != nil {
		return bootData{}, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBootData))
	if err != nil {
		return bootData{}, err
	}
	if response.StatusCode != http.StatusOK {
		return bootData{}, fmt.Errorf("boot provider: status %d: %.128s", response.StatusCode, text)
	}
	var data bootData
	if err := json.Unmarshal(text, &data); err != nil {
		return bootData{}, fmt.Errorf("boot provider: %w", err)
	}
	return data, nil
}

// The flags by which an ignition that is not ours starts the agent, in whatever language it is written.
var (
	registryFlag = regexp.MustCompile(`--registry-url[= ]["']?([^\s"'\\]+)`)
	serverFlag   = regexp.MustCompile(`--server-uuid[= ]["']?([^\s"'\\]+)`)
)

// agentConfig finds the agent's configuration in boot data: the file of our ignition, or the agent's flags in any other.
// An ignition with neither is an operating system's business: metalprobe.ErrNoConfig.
func agentConfig(data bootData) (metalprobe.Config, error) {
	if data.Ignition == nil {
		return metalprobe.Config{}, metalprobe.ErrNoConfig
	}
	if strings.Contains(*data.Ignition, metalprobe.ConfigPath) {
		return metalprobe.ParseIgnition([]byte(*data.Ignition))
	}
	registry, server := registryFlag.FindStringSubmatch(*data.Ignition), serverFlag.FindStringSubmatch(*data.Ignition)
	if registry == nil || server == nil {
		return metalprobe.Config{}, metalprobe.ErrNoConfig
	}
	config := metalprobe.Config{RegistryURL: registry[1], ServerUUID: server[1], Purpose: metalprobe.PurposeProbe}
	return config, config.Validate()
}

// runAgent is the agent, until the machine is switched off or the agent gives up.
func (g *Guests) runAgent(ctx context.Context, machine Machine, data bootData, config metalprobe.Config) {
	kind := KindProbe
	if config.Purpose == metalprobe.PurposeWipe {
		kind = KindWipe
	}
	g.record(ctx, Boot{UUID: machine.UUID, Kind: kind, Image: data.Image, Configuration: data.SBC, Entry: config.Entry})
	if !pause(ctx, g.options.AgentDelay) {
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
		Collect:  func(context.Context) (metalprobe.Data, error) { return machine.describe(), nil },
		Disks:    func(context.Context) ([]metalprobe.Disk, error) { return machine.toWipe(), nil },
		Skipped:  func(context.Context) ([]metalprobe.SkippedDisk, error) { return machine.skipped(), nil },
		Interval: g.options.Interval,
		Log:      g.options.Log,
	}
	// The agent has logged why it stopped.
	_ = agent.Run(ctx)
}

// describe is what the agent finds. It shares nothing that the agent could change.
func (m Machine) describe() metalprobe.Data {
	data := m.Data
	data.Storage = slices.Clone(data.Storage)
	if len(data.Storage) == 0 {
		for _, disk := range m.Disks {
			info := disk.Info()
			info.Removable = judge(disk).Standing == metalprobe.DiskNotFixed
			data.Storage = append(data.Storage, info)
		}
	}
	return data
}

func (m Machine) toWipe() []metalprobe.Disk {
	var disks []metalprobe.Disk
	for _, disk := range m.Disks {
		if verdict := judge(disk); verdict.Standing != metalprobe.DiskNotFixed {
			disks = append(disks, eraser{disk: disk, info: disk.Info(), verdict: verdict})
		}
	}
	return disks
}

func (m Machine) skipped() []metalprobe.SkippedDisk {
	var skipped []metalprobe.SkippedDisk
	for _, disk := range m.Disks {
		if verdict := judge(disk); verdict.Standing == metalprobe.DiskNotFixed {
			skipped = append(skipped, metalprobe.Skip(disk.Info(), verdict))
		}
	}
	return skipped
}

func judge(disk Disk) metalprobe.Verdict { return metalprobe.JudgeDisk(disk.Facts()) }

// eraser makes an emulated disk look like a real one to the agent.
type eraser struct {
	disk    Disk
	info    metalprobe.Storage
	verdict metalprobe.Verdict
}

func (e eraser) Info() metalprobe.Storage { return e.info }

func (e eraser) Verdict() metalprobe.Verdict { return e.verdict }

func (e eraser) Erase(ctx context.Context) (string, error) {
	if now := judge(e.disk); now.Standing != metalprobe.DiskOurs {
		return "", fmt.Errorf("%s not erased: %s", e.info.Path, now.Reason)
	}
	return "emulated", e.disk.Erase(ctx)
}

func (e eraser) Verify(context.Context) error {
	if !e.disk.Erased() {
		return fmt.Errorf("%s: data was found after the erase", e.info.Path)
	}
	return nil
}
