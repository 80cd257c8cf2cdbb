// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/engine/placement"
	"github.com/metalaw/metalaw/policies"
)

func TestEveryClaimOnThePageAboutClaimsCanBeApplied(t *testing.T) {
	page := read(t, "docs/claims.md")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) < 7 {
		t.Fatalf("docs/claims.md shows %d claims", len(blocks))
	}
	shown := map[string]bool{}
	for _, block := range blocks {
		c := &v1alpha1.ServerClaim{}
		if err := yaml.UnmarshalStrict([]byte(block[1]), c); err != nil {
			t.Errorf("%v\n%s", err, block[1])
			continue
		}
		if _, err := policies.ClaimSpecOf(c); err != nil || c.Kind != "ServerClaim" || c.APIVersion != v1alpha1.GroupVersion.String() || c.Spec.Image == "" {
			t.Errorf("claim %s: %v", c.Name, err)
		}
		p, found := policies.PlacementOf(c)
		if len(found) > 0 {
			t.Errorf("claim %s: %v", c.Name, found)
		}
		for _, what := range []string{"where ", "alternative ", "preferred ", "spread ", "gang "} {
			shown[what] = shown[what] || strings.Contains(p.Asks(), what) && !strings.Contains(p.Asks(), what+`""`)
		}
		if spread := p.Spread(); spread != nil && !spread.CountsOwn(c.Labels) {
			t.Errorf("claim %s does not count for the others", c.Name)
		}
	}
	if len(shown) != 5 || strings.Contains(strings.Join(keysOf(shown, false), ""), " ") {
		t.Errorf("docs/claims.md shows no %v", keysOf(shown, false))
	}
}

func keysOf(all map[string]bool, value bool) []string {
	var keys []string
	for key, has := range all {
		if has == value {
			keys = append(keys, key)
		}
	}
	return keys
}

// What the page says kubectl prints is what the findings say.
func TestTheRefusalOnThePageAboutClaimsIsWhatIsSaid(t *testing.T) {
	page := read(t, "docs/claims.md")
	wrong := regexp.MustCompile(`placement='(.*)'\n`).FindStringSubmatch(page)
	if wrong == nil {
		t.Fatal("docs/claims.md shows no refusal")
	}
	_, found := placement.Parse(placement.File, wrong[1])
	for _, d := range found {
		if !strings.Contains(page, "* "+d.String()+"\n") {
			t.Errorf("docs/claims.md does not say %s", d)
		}
	}
	if len(found) == 0 || strings.Count(page, "\n* "+placement.File) != len(found) {
		t.Errorf("%d findings: %v", len(found), found)
	}
}
