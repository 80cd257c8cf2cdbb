// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/internal/yamlpos"
	"github.com/metalaw/metalaw/engine/selection"
)

// Spread keeps claims apart.
type Spread struct {
	// Key is rack, zone, region or the key of a label.
	Key string
	// MaxSkew is how many more claims a place may have than the emptiest.
	MaxSkew int64

	claims *selection.Selector // nil: the gang's
	gang   string
}

// places are the keys that are facts, not labels.
var places = []string{"rack", "zone", "region"}

// Place is where a server stands; empty if it is not known, and such a server is never taken.
func (s *Spread) Place(c *selection.Candidate) string {
	switch s.Key {
	case "rack":
		return c.Rack
	case "zone":
		return c.Zone
	case "region":
		return c.Region
	default:
		return c.Labels[s.Key]
	}
}

// Counts says whether another claim of the same namespace counts, by its labels and the name of its gang.
func (s *Spread) Counts(labels map[string]string, gang string) bool {
	if s.claims == nil {
		return gang == s.gang
	}
	return s.claims.Matches(labels)
}

// CountsOwn says whether the claim that bears the placement is one that counts for the others of its kind.
func (s *Spread) CountsOwn(labels map[string]string) bool {
	return s.claims == nil || s.claims.Matches(labels)
}

// Emptiest is the smallest count of any place; 0 where no place is known.
func Emptiest(counts map[string]int64) int64 {
	first, least := true, int64(0)
	for _, n := range counts {
		if first || n < least {
			first, least = false, n
		}
	}
	return least
}

// Allows says whether one more claim may go to a place. A place without a count is empty.
func (s *Spread) Allows(place string, counts map[string]int64) (ok bool, message string) {
	emptiest := Emptiest(counts)
	switch {
	case s.Fits(place, counts, emptiest):
		return true, ""
	case place == "":
		return false, fmt.Sprintf("it has no %s, by which the claim is spread", s.missingWords())
	default:
		return false, fmt.Sprintf("its %s has %d of the claims that count and the emptiest (%s) has %d; with this one it would exceed maxSkew %d",
			s.keyWords(), counts[place], nameOf(emptiest, counts), emptiest, s.MaxSkew)
	}
}

// nameOf is the first place in the alphabet that has so many.
func nameOf(count int64, counts map[string]int64) string {
	first := ""
	for place, n := range counts {
		if n == count && (first == "" || place < first) {
			first = place
		}
	}
	return first
}

// Fits is Allows without words, for who knows what the emptiest place has.
func (s *Spread) Fits(place string, counts map[string]int64, emptiest int64) bool {
	return place != "" && counts[place]+1-emptiest <= s.MaxSkew
}

// missingWords tell a fact from a label of the same name.
func (s *Spread) missingWords() string {
	words := s.keyWords()
	if words == s.Key {
		words += " (the fact server." + s.Key + ")"
	}
	return words
}

func (s *Spread) keyWords() string {
	if slices.Contains(places, s.Key) {
		return s.Key
	}
	return "label " + s.Key
}

func (p *parser) spread(f yamlpos.Field) {
	s := &Spread{MaxSkew: 1}
	before, keyAt := len(p.file.Found), (*yaml.Node)(nil)
	fields := p.file.Fields(f.Value, fieldSpread, "key", "maxSkew", "claims")
	p.require(f.Value, fieldSpread, fields, "key")
	for _, field := range fields {
		switch field.Name {
		case "key":
			keyAt, s.Key = field.Value, p.file.Text(field.Value, "key")
			if !labelKey.MatchString(s.Key) {
				p.file.Errorf(field.Value, "placement-key", fieldSpread, "write rack, zone, region or the key of a label",
					"%q is no key of a place", s.Key)
			}
		case "maxSkew":
			s.MaxSkew = p.number(field, fieldSpread, 1, MaxSkew)
		case "claims":
			s.claims = p.selector(field, fieldSpread)
		}
	}
	if len(p.file.Found) > before {
		return
	}
	p.checkSpread(f, s, keyAt)
	if gang := p.out.gang; gang != nil {
		s.gang = gang.Name
	}
	p.out.spread = s
}

// checkSpread says what a spread of which each field can be read does not do.
func (p *parser) checkSpread(f yamlpos.Field, s *Spread, keyAt *yaml.Node) {
	gang := p.out.gang
	switch {
	case s.claims == nil && gang == nil:
		p.file.Errorf(f.Key, "placement-claims", fieldSpread, "add claims: with the labels of the claims to keep apart, or gang:",
			"it does not say which claims it keeps apart")
	case s.claims == nil && gang != nil && gang.Size > 0 && s.MaxSkew >= gang.Size:
		p.warn(f.Key, "placement-no-effect", fieldSpread, "lower maxSkew",
			"it has no effect: maxSkew %d allows all %d members of the gang in one place", s.MaxSkew, gang.Size)
	}
	// Servers may have a label that is spelled like a fact but for its capitals, but hardly ever do.
	if near := strings.ToLower(s.Key); near != s.Key && slices.Contains(places, near) {
		p.warn(keyAt, "placement-key-case", fieldSpread, "did you mean "+near+"?",
			"it goes by the label %s of servers, not by their %s", s.Key, near)
	}
}
