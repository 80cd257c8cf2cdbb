// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/maintenance"
)

// EngineVersion is the version of the vocabulary and of the forms that this engine understands.
const EngineVersion = "0.4.0"

// The words that settings may hold.
const (
	SanitizationRequired = "required"
	SanitizationNone     = "none"
	FirstSeenObserve     = "observe"
	FirstSeenManage      = "manage"
	TLSVerify            = "verify"
	TLSInsecure          = "insecure"
	TLSPin               = "pin"
	PowerAfterGrace      = "AfterGrace"
	PowerImmediate       = "Immediate"
)

// defaultReleaseShutdown is how long an operating system has to shut down once its claim has ended, where the bundle does not say.
const defaultReleaseShutdown = 2 * time.Minute

// Settings is what bundle.yaml says besides its name.
type Settings struct {
	// Sanitization is SanitizationRequired or SanitizationNone.
	Sanitization string
	// FirstSeen is FirstSeenObserve or FirstSeenManage.
	FirstSeen string
	// ReleaseGrace delays the wipe after a claim's end.
	ReleaseGrace time.Duration
	// ReleasePower is PowerAfterGrace or PowerImmediate: whether the grace delays the end of what the holder runs, too.
	ReleasePower string
	// ReleaseShutdown is how long, under PowerImmediate, the operating system of a claim that ended may take to shut down.
	ReleaseShutdown time.Duration
	// AllowUnauthenticated accepts probe reports without a token.
	AllowUnauthenticated bool
	// BMCTLS is TLSVerify, TLSInsecure or TLSPin.
	BMCTLS string
	// BMCPinWithin are the networks in which TLSPin trusts the certificate that a BMC shows at first use.
	BMCPinWithin []netip.Prefix
	// Health is what a critical part of a machine stops.
	Health Health
	// Canary is what a canary of this bundle may cost.
	Canary Canary
	// Coverage is how much of the bundle its own scenarios and tests must show.
	Coverage CoverageFloor
	// Claims is how claims are served.
	Claims Claims
	// NoInventoryLabels keeps the hardware out of the labels of Servers (labels.inventory: false): a cloud controller copies
	// them to Nodes, where tenants read them.
	NoInventoryLabels bool
	// Boot is how machines are booted.
	Boot Boot
	// OfferAccepts is offer.accepts; nil where the bundle does not say. Ask Accepts.
	OfferAccepts []string
	// Wipe is how disks are erased.
	Wipe Wipe
	// Maintenance is which maintenances are granted when. It is never nil in a bundle.
	Maintenance *maintenance.Policy
	// Decommission is which servers are proposed to go out of service.
	Decommission Decommission
}

// Health is what becomes of a server whose BMC reports a part of the machine as critical.
type Health struct {
	// CriticalStops is StopsInspection, StopsOffering or StopsNothing.
	CriticalStops string
}

// The words of health.criticalStops.
const (
	StopsInspection = "inspection"
	StopsOffering   = "offering"
	StopsNothing    = "nothing"
)

// Canary is the budget of a canary: once more servers than that are in trouble under it, it pauses itself.
type Canary struct {
	// MaxHalts is how many servers it may halt.
	MaxHalts int
	// MaxErrors is how many servers it may bring to the state Error.
	MaxErrors int
}

// CoverageFloor is what scenarios and tests must show, in percent. That scenarios exercise every rule of the lifecycle, and
// tests every rule of the Rego, holds besides.
type CoverageFloor struct {
	// Rego is the share of the lines of the Rego that tests evaluate.
	Rego int
	// Effects is the share of what the states ensure that scenarios show.
	Effects int
}

const (
	// leastRegoCoverage is the floor that no bundle can lower.
	leastRegoCoverage = 80
	maxBudget         = 100000
	// codeEngine is the code of a bundle for a newer engine.
	codeEngine = "engine-too-old"
)

// Manifest is bundle.yaml.
type Manifest struct {
	Name             string
	Version          string
	Description      string
	MinEngineVersion string
	Settings         Settings
}

// objectName is the form of a name that an object can have.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// labelName is the form of the key of a label.
var labelName = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// A revision is an object whose name has both, and 253 characters at most.
const (
	maxBundleName = 42
	maxVersion    = 64
)

// ValidName says whether a bundle may have a name: its revisions are objects whose names begin with it.
func ValidName(name string) bool { return len(name) <= maxBundleName && objectName.MatchString(name) }

// parseManifest reads bundle.yaml; what is left out has the safe value.
func parseManifest(data []byte) (Manifest, diag.List) {
	f := yamlpos.Parse(BundleFile, data)
	m := Manifest{Settings: Settings{Sanitization: SanitizationRequired, FirstSeen: FirstSeenObserve, BMCTLS: TLSVerify,
		ReleasePower: PowerAfterGrace, ReleaseShutdown: defaultReleaseShutdown,
		Health: Health{CriticalStops: StopsInspection}, Coverage: CoverageFloor{Rego: leastRegoCoverage},
		Claims: defaultClaims(), Boot: defaultBoot(), Wipe: defaultWipe(), Maintenance: maintenance.Default(), Decommission: defaultDecommission()}}
	if f.Root == nil {
		return m, f.Found
	}
	readKeys(f, f.Root, "the bundle",
		key{"apiVersion", only("yaml-api-version", "policy.metalaw.dev/v1alpha1")},
		key{"kind", only("yaml-kind", "Bundle")},
		key{"name", m.readName},
		key{"version", m.readVersion},
		key{"description", func(f *yamlpos.File, k yamlpos.Field) { m.Description = f.Text(k.Value, k.Name) }},
		key{"minEngineVersion", m.readMinEngineVersion},
		key{"settings", mapping(m.Settings.keys()...)})
	m.Settings.Maintenance.ReleaseGrace = m.Settings.ReleaseGrace
	if m.Name == "" {
		f.Errorf(f.Root, "bundle-name", "", "add name:", "the bundle has no name")
	}
	if m.Version == "" {
		f.Errorf(f.Root, "bundle-version", "", "add version:, for example 1.0.0", "the bundle has no version")
	}
	return m, f.Found
}

func (m *Manifest) readName(f *yamlpos.File, k yamlpos.Field) {
	if m.Name = f.Text(k.Value, k.Name); !ValidName(m.Name) {
		f.Errorf(k.Value, "bundle-name", "", "use lower-case letters, digits, dashes and dots, at most 42",
			"%q cannot be a bundle's name", m.Name)
	}
}

// keys are what settings may hold.
func (s *Settings) keys() []key {
	return []key{
		{"sanitization", word(&s.Sanitization, SanitizationRequired, SanitizationNone)},
		{"firstSeen", word(&s.FirstSeen, FirstSeenObserve, FirstSeenManage)},
		{"releaseGrace", span(&s.ReleaseGrace, "24h")},
		{"releasePower", word(&s.ReleasePower, PowerAfterGrace, PowerImmediate)},
		{"releaseShutdown", span(&s.ReleaseShutdown, "2m")},
		{"probe", mapping(key{"allowUnauthenticated", truth(&s.AllowUnauthenticated)})},
		{"bmc", s.readBMC},
		{"canary", mapping(
			key{"maxHalts", whole(&s.Canary.MaxHalts, 0, maxBudget)},
			key{"maxErrors", whole(&s.Canary.MaxErrors, 0, maxBudget)})},
		{"coverage", mapping(
			key{"rego", whole(&s.Coverage.Rego, leastRegoCoverage, 100)},
			key{"effects", whole(&s.Coverage.Effects, 0, 100)})},
		{"claims", mapping(s.Claims.keys()...)},
		{"labels", mapping(key{"inventory", func(f *yamlpos.File, k yamlpos.Field) { s.NoInventoryLabels = !f.Bool(k.Value, k.Name) }})},
		{"boot", s.Boot.read},
		{"offer", mapping(key{"accepts", s.readAccepts})},
		{"wipe", mapping(s.Wipe.keys()...)},
		{"health", mapping(key{"criticalStops", word(&s.Health.CriticalStops, StopsInspection, StopsOffering, StopsNothing)})},
		{"maintenance", s.readMaintenance},
		{"decommission", mapping(s.Decommission.keys()...)},
	}
}

func (s *Settings) readBMC(f *yamlpos.File, k yamlpos.Field) {
	wrong := len(f.Found)
	given := readKeys(f, k.Value, k.Name,
		key{"tls", word(&s.BMCTLS, TLSVerify, TLSInsecure, TLSPin)},
		key{"pinWithin", func(f *yamlpos.File, k yamlpos.Field) { s.BMCPinWithin = networks(f, k.Value, k.Name) }})
	switch {
	case len(f.Found) > wrong: // what is wrong already says enough
	case s.BMCTLS == TLSPin && len(s.BMCPinWithin) == 0:
		f.Errorf(k.Value, "setting-pin", "", "add pinWithin with the networks of the BMCs, such as [10.20.0.0/16]",
			"tls is pin and no network is named in which a certificate may be pinned")
	case s.BMCTLS != TLSPin && slices.Contains(given, "pinWithin"):
		f.Errorf(k.Value, "setting-pin", "", "write tls: pin, or remove pinWithin", "pinWithin is written and tls is %s", s.BMCTLS)
	}
}

// networks reads a list of networks in CIDR notation.
func networks(f *yamlpos.File, n *yaml.Node, what string) []netip.Prefix {
	var list []netip.Prefix
	for _, item := range f.Items(n, what) {
		text := f.Text(item, what)
		prefix, err := netip.ParsePrefix(text)
		switch {
		case f.Told(item):
		case err != nil || prefix.Addr().Is4In6():
			f.Errorf(item, "setting-network", "", "write a network such as 10.20.0.0/16 or fd00:20::/64",
				"%s cannot be %q, which is no network", what, text)
		case prefix != prefix.Masked():
			f.Errorf(item, "setting-network", "", fmt.Sprintf("write %s", prefix.Masked()),
				"%s cannot be %q, which is an address in a network", what, text)
		default:
			list = append(list, prefix)
			if prefix.Bits() == 0 {
				f.Warnf(item, "setting-network", "", "name the networks of the BMCs",
					"%s names every address, so the first device that answers is trusted", text)
			}
		}
	}
	return list
}

func (m *Manifest) readVersion(f *yamlpos.File, k yamlpos.Field) {
	m.Version = f.Text(k.Value, k.Name)
	if semantic(f, k, m.Version) == nil {
		return
	}
	switch {
	case len(m.Version) > maxVersion:
		f.Errorf(k.Value, "version-form", "", "put what is longer into description:", "version has %d characters and may have %d",
			len(m.Version), maxVersion)
	case !objectName.MatchString(RevisionName("x", m.Version, "x")):
		f.Errorf(k.Value, "version-form", "", "begin and end each part between dots with a letter or a digit, such as 1.2.0-rc.1",
			"version is %q, of which no name of a PolicyRevision can be made", m.Version)
	}
}

func (m *Manifest) readMinEngineVersion(f *yamlpos.File, k yamlpos.Field) {
	m.MinEngineVersion = f.Text(k.Value, k.Name)
	have := semver.MustParse(EngineVersion)
	if wanted := semantic(f, k, m.MinEngineVersion); wanted != nil && wanted.GreaterThan(have) {
		f.Errorf(k.Value, codeEngine, "", "upgrade metalaw, or lower minEngineVersion if the bundle uses nothing newer",
			"the bundle needs engine %s and this is %s", wanted, have)
	}
}

// semantic reads a semantic version; nil where the text is none.
func semantic(f *yamlpos.File, k yamlpos.Field, text string) *semver.Version {
	v, err := semver.StrictNewVersion(text)
	if err != nil {
		f.Errorf(k.Value, "version-form", "", "write a semantic version such as 1.2.0", "%s is %q: %v", k.Name, text, err)
		return nil
	}
	return v
}
