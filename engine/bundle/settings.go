// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// EngineVersion is the version of the vocabulary and of the forms that this engine understands.
const EngineVersion = "0.2.0"

// The words that settings may hold.
const (
	SanitizationRequired = "required"
	SanitizationNone     = "none"
	FirstSeenObserve     = "observe"
	FirstSeenManage      = "manage"
	TLSVerify            = "verify"
	TLSInsecure          = "insecure"
	TLSPin               = "pin"
)

// Settings is what bundle.yaml says besides its name.
type Settings struct {
	// Sanitization is SanitizationRequired or SanitizationNone.
	Sanitization string
	// FirstSeen is FirstSeenObserve or FirstSeenManage.
	FirstSeen string
	// ReleaseGrace delays the wipe after a claim's end.
	ReleaseGrace time.Duration
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
		Health: Health{CriticalStops: StopsInspection}, Coverage: CoverageFloor{Rego: leastRegoCoverage},
		Claims: defaultClaims(), Boot: defaultBoot()}}
	if f.Root == nil {
		return m, f.Found
	}
	for _, field := range f.Fields(f.Root, "the bundle", "apiVersion", "kind", "name", "version", "description", "minEngineVersion", "settings") {
		switch field.Name {
		case "apiVersion":
			f.Only(field, "yaml-api-version", "policy.metalaw.dev/v1alpha1")
		case "kind":
			f.Only(field, "yaml-kind", "Bundle")
		case "name":
			m.Name = f.Text(field.Value, "name")
			if !ValidName(m.Name) {
				f.Errorf(field.Value, "bundle-name", "", "use lower-case letters, digits, dashes and dots, at most 42",
					"%q cannot be a bundle's name", m.Name)
			}
		case "version":
			m.Version = version(f, field.Value, "version")
			checkName(f, field.Value, m.Version)
		case "description":
			m.Description = f.Text(field.Value, "description")
		case "minEngineVersion":
			m.MinEngineVersion = version(f, field.Value, "minEngineVersion")
			checkEngine(f, field.Value, m.MinEngineVersion)
		case "settings":
			m.Settings = parseSettings(f, field.Value, m.Settings)
		}
	}
	if m.Name == "" {
		f.Errorf(f.Root, "bundle-name", "", "add name:", "the bundle has no name")
	}
	if m.Version == "" {
		f.Errorf(f.Root, "bundle-version", "", "add version:, for example 1.0.0", "the bundle has no version")
	}
	return m, f.Found
}

func parseSettings(f *yamlpos.File, n *yaml.Node, s Settings) Settings {
	for _, field := range f.Fields(n, "settings", "sanitization", "firstSeen", "releaseGrace", "probe", "bmc", "canary", "coverage", "claims",
		"labels", "boot", "health") {
		switch field.Name {
		case "sanitization":
			s.Sanitization = oneOf(f, field.Value, field.Name, SanitizationRequired, SanitizationNone)
		case "firstSeen":
			s.FirstSeen = oneOf(f, field.Value, field.Name, FirstSeenObserve, FirstSeenManage)
		case "releaseGrace":
			s.ReleaseGrace = duration(f, field.Value, field.Name, "24h")
		case "probe":
			for _, p := range f.Fields(field.Value, "probe", "allowUnauthenticated") {
				s.AllowUnauthenticated = f.Bool(p.Value, p.Name)
			}
		case "bmc":
			s = parseBMC(f, field.Value, s)
		case "health":
			s.Health = parseHealth(f, field.Value, s.Health)
		case "canary":
			s.Canary = parseCanary(f, field.Value, s.Canary)
		case "coverage":
			s.Coverage = parseCoverage(f, field.Value, s.Coverage)
		case "claims":
			s.Claims = parseClaims(f, field.Value, s.Claims)
		case "labels":
			for _, p := range f.Fields(field.Value, "labels", "inventory") {
				s.NoInventoryLabels = !f.Bool(p.Value, p.Name)
			}
		case "boot":
			s.Boot = parseBoot(f, field.Value, s.Boot)
		}
	}
	return s
}

func parseBMC(f *yamlpos.File, n *yaml.Node, s Settings) Settings {
	wrong := len(f.Found)
	given := false
	for _, field := range f.Fields(n, "bmc", "tls", "pinWithin") {
		switch field.Name {
		case "tls":
			s.BMCTLS = oneOf(f, field.Value, field.Name, TLSVerify, TLSInsecure, TLSPin)
		case "pinWithin":
			s.BMCPinWithin, given = networks(f, field.Value, field.Name), true
		}
	}
	switch {
	case len(f.Found) > wrong: // what is wrong already says enough
	case s.BMCTLS == TLSPin && len(s.BMCPinWithin) == 0:
		f.Errorf(n, "setting-pin", "", "add pinWithin with the networks of the BMCs, such as [10.20.0.0/16]",
			"tls is pin and no network is named in which a certificate may be pinned")
	case s.BMCTLS != TLSPin && given:
		f.Errorf(n, "setting-pin", "", "write tls: pin, or remove pinWithin", "pinWithin is written and tls is %s", s.BMCTLS)
	}
	return s
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

func parseHealth(f *yamlpos.File, n *yaml.Node, h Health) Health {
	for _, field := range f.Fields(n, "health", "criticalStops") {
		h.CriticalStops = oneOf(f, field.Value, field.Name, StopsInspection, StopsOffering, StopsNothing)
	}
	return h
}

func parseCanary(f *yamlpos.File, n *yaml.Node, c Canary) Canary {
	for _, field := range f.Fields(n, "canary", "maxHalts", "maxErrors") {
		switch field.Name {
		case "maxHalts":
			c.MaxHalts = number(f, field.Value, field.Name, 0, maxBudget)
		case "maxErrors":
			c.MaxErrors = number(f, field.Value, field.Name, 0, maxBudget)
		}
	}
	return c
}

func parseCoverage(f *yamlpos.File, n *yaml.Node, c CoverageFloor) CoverageFloor {
	for _, field := range f.Fields(n, "coverage", "rego", "effects") {
		switch field.Name {
		case "rego":
			c.Rego = number(f, field.Value, field.Name, leastRegoCoverage, 100)
		case "effects":
			c.Effects = number(f, field.Value, field.Name, 0, 100)
		}
	}
	return c
}

// duration reads a length of time.
func duration(f *yamlpos.File, n *yaml.Node, what, example string) time.Duration {
	text := f.Text(n, what)
	d, err := time.ParseDuration(text)
	switch {
	case err == nil && d >= 0:
		return d
	case f.Told(n):
	case yamlpos.TooLong(text):
		f.Errorf(n, "setting-duration", "", fmt.Sprintf("write a duration such as %s, of %s at most", example, yamlpos.Longest),
			"%s cannot be %q, which is out of range", what, text)
	default:
		f.Errorf(n, "setting-duration", "", "write a duration such as "+example, "%s cannot be %q, which is no duration", what, text)
	}
	return 0
}

// number reads a whole number within bounds.
func number(f *yamlpos.File, n *yaml.Node, what string, least, most int) int {
	text := f.Text(n, what)
	value, err := strconv.Atoi(text)
	if f.Told(n) {
		return least
	}
	if err != nil || n.Style != 0 || value < least || value > most {
		f.Errorf(n, "setting-number", "", fmt.Sprintf("write a whole number from %d to %d", least, most), "%s cannot be %q", what, text)
		return least
	}
	return value
}

func oneOf(f *yamlpos.File, n *yaml.Node, what string, words ...string) string {
	if n.Kind == yaml.ScalarNode && !slices.Contains(words, n.Value) {
		f.Errorf(n, "setting-word", "", "write "+strings.Join(words, " or "), "%s cannot be %q", what, n.Value)
		return words[0]
	}
	return f.Text(n, what)
}

func version(f *yamlpos.File, n *yaml.Node, what string) string {
	text := f.Text(n, what)
	if _, err := semver.StrictNewVersion(text); err != nil {
		f.Errorf(n, "version-form", "", "write a semantic version such as 1.2.0", "%s is %q: %v", what, text, err)
	}
	return text
}

// checkName refuses a version of which no name of a PolicyRevision can be made.
func checkName(f *yamlpos.File, n *yaml.Node, text string) {
	if _, err := semver.StrictNewVersion(text); err != nil {
		return
	}
	switch {
	case len(text) > maxVersion:
		f.Errorf(n, "version-form", "", "put what is longer into description:", "version has %d characters and may have %d", len(text), maxVersion)
	case !objectName.MatchString(RevisionName("x", text, "x")):
		f.Errorf(n, "version-form", "", "begin and end each part between dots with a letter or a digit, such as 1.2.0-rc.1",
			"version is %q, of which no name of a PolicyRevision can be made", text)
	}
}

func checkEngine(f *yamlpos.File, n *yaml.Node, text string) {
	wanted, err := semver.StrictNewVersion(text)
	if err != nil {
		return
	}
	have := semver.MustParse(EngineVersion)
	if wanted.GreaterThan(have) {
		f.Errorf(n, codeEngine, "", "upgrade metalaw, or lower minEngineVersion if the bundle uses nothing newer",
			"the bundle needs engine %s and this is %s", wanted, have)
	}
}
