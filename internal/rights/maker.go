// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"encoding/json"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
)

const (
	// maxGroups is how many groups of a maker are kept.
	maxGroups = 64
	// maxMaker is how many bytes the annotation may have.
	maxMaker = 8 << 10
)

// Maker is the user who made a maintenance or changed it last, as authentication told it.
type Maker struct {
	Username string              `json:"username"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// MakerOf is the user of a request.
func MakerOf(user authenticationv1.UserInfo) Maker {
	m := Maker{Username: user.Username, UID: user.UID, Groups: user.Groups}
	for key, values := range user.Extra {
		if m.Extra == nil {
			m.Extra = make(map[string][]string, len(user.Extra))
		}
		m.Extra[key] = values
	}
	return m
}

// Annotation is the value of v1alpha1.MakerAnnotation. A maker that is too large to keep is an error: a part of it could hold fewer
// rights, or other ones.
func (m Maker) Annotation() (string, error) {
	if err := m.check(); err != nil {
		return "", err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	if len(text) > maxMaker {
		return "", fmt.Errorf("what authentication says of user %.64q takes %d bytes, and at most %d can be kept", m.Username, len(text), maxMaker)
	}
	return string(text), nil
}

// ParseMaker reads a value of v1alpha1.MakerAnnotation. What it refuses is no maker: nobody is known to hold any right.
func ParseMaker(text string) (Maker, error) {
	if len(text) > maxMaker {
		return Maker{}, fmt.Errorf("the maker takes %d bytes, more than %d", len(text), maxMaker)
	}
	var m Maker
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return Maker{}, fmt.Errorf("the maker is not the JSON object that admission writes: %w", err)
	}
	if err := m.check(); err != nil {
		return Maker{}, err
	}
	return m, nil
}

func (m Maker) check() error {
	switch {
	case m.Username == "":
		return errors.New("the maker has no username")
	case len(m.Groups) > maxGroups:
		return fmt.Errorf("user %.64q is in %d groups, and at most %d can be kept", m.Username, len(m.Groups), maxGroups)
	}
	return nil
}
