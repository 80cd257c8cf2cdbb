// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/bundle"
	"github.com/metalaw/metalaw/engine/selection"
)

// maxLabelValue is how long the API lets the value of a label be.
const maxLabelValue = 63

// InventoryLabel is a fact of a server's hardware that its labels show, so that a plain label selector can ask for it.
type InventoryLabel struct {
	Key, Doc string
	value    func(selection.Candidate) string
}

// InventoryLabels lists the labels, in the order of the reference. What is not known has no label; a number that is known to
// be 0 cannot be told from one that is not known, and has none either.
func InventoryLabels() []InventoryLabel {
	const prefix = v1alpha1.InventoryLabelPrefix
	return []InventoryLabel{
		{prefix + "manufacturer", "Manufacturer, as the BMC reports it, in the characters that a label may have.",
			func(c selection.Candidate) string { return labelValue(c.Manufacturer) }},
		{prefix + "model", "Model, likewise.", func(c selection.Candidate) string { return labelValue(c.Model) }},
		{prefix + "sku", "Stock keeping unit, likewise.", func(c selection.Candidate) string { return labelValue(c.SKU) }},
		{prefix + "cpu-model", "Model of the first processor, likewise.", func(c selection.Candidate) string { return labelValue(c.CPUModel) }},
		{prefix + "cpus", "Number of processor packages.", func(c selection.Candidate) string { return count(c.CPUCount) }},
		{prefix + "cores", "Number of processor cores over all packages.", func(c selection.Candidate) string { return count(c.Cores) }},
		{prefix + "memory-gib", "Memory in GiB, rounded down.", func(c selection.Candidate) string { return count(c.MemoryGiB) }},
		{prefix + "gpus", "Number of GPUs.", func(c selection.Candidate) string { return count(c.GPUs) }},
		{prefix + "nvme-disks", "Number of NVMe disks.", func(c selection.Candidate) string { return count(c.Disks.NVMe) }},
		{prefix + "ssd-disks", "Number of other solid-state disks.", func(c selection.Candidate) string { return count(c.Disks.SSD) }},
		{prefix + "hdd-disks", "Number of rotating disks.", func(c selection.Candidate) string { return count(c.Disks.HDD) }},
		{prefix + "nic-mbits", "Speed of the fastest network port in Mbit/s.", func(c selection.Candidate) string { return count(c.NICMaxSpeed) }},
	}
}

// LabelsFor are the labels to have beside those that are there: of the prefix those of the hardware, and no other, and none at all
// where the settings say so. It returns the labels themselves where they are as they should be.
func LabelsFor(labels map[string]string, c selection.Candidate, s bundle.Settings) map[string]string {
	want := map[string]string{}
	for key, value := range labels {
		if !strings.HasPrefix(key, v1alpha1.InventoryLabelPrefix) {
			want[key] = value
		}
	}
	for _, label := range InventoryLabels() {
		if value := label.value(c); value != "" && !s.NoInventoryLabels {
			want[label.Key] = value
		}
	}
	if maps.Equal(labels, want) {
		return labels
	}
	return want
}

// AsksInventory lists the labels of the prefix that a claim's selector asks about, sorted; a key that must not be there counts.
func AsksInventory(c *v1alpha1.ServerClaim) []string {
	asked := map[string]bool{}
	if s := c.Spec.ServerSelector; s != nil {
		for key := range s.MatchLabels {
			asked[key] = true
		}
		for _, e := range s.MatchExpressions {
			asked[e.Key] = true
		}
	}
	maps.DeleteFunc(asked, func(key string, _ bool) bool { return !strings.HasPrefix(key, v1alpha1.InventoryLabelPrefix) })
	return slices.Sorted(maps.Keys(asked))
}

// WithoutInventory is a selector without what it asks of those labels, and says whether it asks anything of them. It may be nil.
func WithoutInventory(s *selection.Selector) (others *selection.Selector, asks bool) {
	if s == nil {
		return nil, false
	}
	others = &selection.Selector{MatchLabels: map[string]string{}}
	for key, value := range s.MatchLabels {
		if !strings.HasPrefix(key, v1alpha1.InventoryLabelPrefix) {
			others.MatchLabels[key] = value
		}
	}
	for _, e := range s.MatchExpressions {
		if !strings.HasPrefix(e.Key, v1alpha1.InventoryLabelPrefix) {
			others.MatchExpressions = append(others.MatchExpressions, e)
		}
	}
	return others, len(others.MatchLabels)+len(others.MatchExpressions) < len(s.MatchLabels)+len(s.MatchExpressions)
}

func count(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// labelValue writes a text in the characters that the value of a label may have: every run of others becomes one underscore,
// and it begins and ends with a letter or a digit.
func labelValue(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case (r == '-' || r == '.') && !gap:
		default:
			gap = true
			continue
		}
		if gap {
			b.WriteByte('_')
			gap = false
		}
		b.WriteRune(r)
	}
	value := strings.Trim(b.String(), "_-.")
	if len(value) > maxLabelValue {
		value = strings.TrimRight(value[:maxLabelValue], "_-.")
	}
	return value
}
