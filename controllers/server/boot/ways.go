// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/redfish"
)

// targetCD is the boot source for virtual media.
const targetCD = "Cd"

// Way is one way to boot what is prepared.
type Way struct {
	// Target is the boot source.
	Target string
	// Media is the URL of the ISO to insert first; empty for the network.
	Media string
}

// WaysInput is everything that the ways of a boot depend on.
type WaysInput struct {
	// Source is what a boot from the network is booted from; see Source.
	Source string
	// Policy are the ways of the bundle, and BMC those of the annotation of the BMC, which go before them.
	Policy []string
	BMC    string
	// Service is the URL by which BMCs reach the boot service; empty where there is none.
	Service string
	// Boot is the boot configuration in force; nil where there is none.
	Boot *v1alpha1.ServerBootConfiguration
}

// Ways lists the ways in which a machine may boot, the preferred one first. Where there is none, waits says what for.
func Ways(in WaysInput) (ways []Way, waits string) {
	wanted := in.wanted()
	media := in.media()
	for _, way := range wanted {
		switch {
		case way == bundle.BootWayNetwork:
			ways = append(ways, Way{Target: in.Source})
		case media != "" && in.Source != redfish.TargetBootOrder: // without an override nothing leads to the drive
			ways = append(ways, Way{Target: targetCD, Media: media})
		}
	}
	if len(ways) == 0 {
		waits = fmt.Sprintf("the boot service to publish an ISO, because boot.ways names %s alone; "+
			"see the boot configuration, or add %s", strings.Join(wanted, ", "), bundle.BootWayNetwork)
	}
	return ways, waits
}

// wanted are the ways in order. An annotation that names no way that there is says nothing.
func (in WaysInput) wanted() []string {
	all := []string{bundle.BootWayVirtualMedia, bundle.BootWayNetwork}
	var named []string
	for way := range strings.SplitSeq(in.BMC, ",") {
		if way = strings.TrimSpace(way); slices.Contains(all, way) && !slices.Contains(named, way) {
			named = append(named, way)
		}
	}
	if len(named) > 0 {
		return named
	}
	if len(in.Policy) > 0 {
		return in.Policy
	}
	return []string{bundle.BootWayNetwork}
}

// media is the URL of the ISO. One that is not of the boot service is not inserted: who may write the boot configuration would
// choose what a BMC fetches, and from where.
func (in WaysInput) media() string {
	if in.Boot == nil || in.Service == "" {
		return ""
	}
	if url := in.Boot.Annotations[v1alpha1.MediaURLAnnotation]; strings.HasPrefix(url, in.Service+"/") {
		return url
	}
	return ""
}

// Booted says that a machine that is on is known to have booted, so that it needs no image of ours any more.
func (in OverrideInput) Booted() bool {
	in.FirstWord = 1 // only proof counts
	in.Testing = false
	in.Now = in.Since
	return in.untilBooted() == 0
}
