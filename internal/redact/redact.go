// SPDX-License-Identifier: Apache-2.0

// Package redact takes out of documents and texts what may be a secret, by the key at which it stands and by its form. All that leaves
// a site through metalaw goes through it.
package redact

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Hidden stands for what was taken out.
const Hidden = "[hidden]"

// Redactor takes secrets out, and remembers them, so that each can be found wherever else it stands. The zero value is ready.
type Redactor struct {
	// Count is how many places were hidden.
	Count int
	known map[string]bool
	// replacer hides what is known; nil where more became known since it was made.
	replacer *strings.Replacer
}

// shortest is the length below which a hidden text may occur elsewhere by chance.
const shortest = 8

// hide takes one text out. What tells says is remembered.
func (r *Redactor) hide(text string) string {
	if strings.TrimSpace(text) == "" || text == Hidden {
		return text
	}
	r.Count++
	if len(text) >= shortest && strings.ContainsAny(text, "0123456789") && !strings.Contains(text, Hidden) {
		if r.known == nil {
			r.known = map[string]bool{}
		}
		r.known[text], r.replacer = true, nil
	}
	return Hidden
}

// Document redacts a value as encoding/json decodes it. It changes maps and lists in place.
func (r *Redactor) Document(value any) any { return r.walk("", value, false) }

// walk redacts a value at a key. under says that it is a part of something that a secret key names.
func (r *Redactor) walk(key string, value any, under bool) any {
	switch v := value.(type) {
	case map[string]any:
		r.walkMap(v, under)
	case []any:
		for i, below := range v {
			v[i] = r.walk(key, below, under)
		}
	case string:
		if under && !isLink(key) && !isSwitch(v) {
			return r.hide(v)
		}
		return r.Text(v)
	case float64, json.Number, int64:
		if under && isWordFor(key) {
			r.Count++
			return Hidden
		}
	}
	return value
}

func (r *Redactor) walkMap(v map[string]any, under bool) {
	named := namesSecret(v)
	for _, key := range slices.Sorted(maps.Keys(v)) {
		secret := under || IsSecret(key) || named && isValue(key)
		if secret && strings.EqualFold(key, "key") && !under && selects(v) {
			secret = false
		}
		v[key] = r.walk(key, v[key], secret)
	}
}

// Log redacts lines. One that is JSON is redacted by its keys as well; those between two such lines are one text.
func (r *Redactor) Log(text []byte) []byte {
	var out, plain bytes.Buffer
	flush := func() {
		out.WriteString(r.Text(plain.String()))
		plain.Reset()
	}
	for line := range bytes.Lines(text) {
		redacted, is := r.line(line)
		if !is {
			plain.Write(line)
			continue
		}
		flush()
		out.Write(redacted)
	}
	flush()
	return out.Bytes()
}

// line redacts a line that is a JSON object, and says whether it is one.
func (r *Redactor) line(line []byte) ([]byte, bool) {
	var document map[string]any
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if err := decoder.Decode(&document); err != nil || document == nil || decoder.More() {
		return nil, false
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r.Document(document)); err != nil {
		return nil, false
	}
	return out.Bytes(), true
}

// EverywhereIn does what Everywhere does in each string of a value. It changes maps and lists in place.
func (r *Redactor) EverywhereIn(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, below := range v {
			v[key] = r.EverywhereIn(below)
		}
	case []any:
		for i, below := range v {
			v[i] = r.EverywhereIn(below)
		}
	case string:
		return r.Everywhere(v)
	}
	return value
}

// Everywhere hides what was hidden at one place wherever else it stands. Ask it when all was seen.
func (r *Redactor) Everywhere(text string) string {
	if len(r.known) == 0 {
		return text
	}
	if r.replacer == nil {
		var pairs []string
		for _, value := range slices.SortedFunc(maps.Keys(r.known), longerFirst) {
			pairs = append(pairs, value, Hidden)
		}
		r.replacer = strings.NewReplacer(pairs...)
	}
	after := r.replacer.Replace(text)
	r.Count += strings.Count(after, Hidden) - strings.Count(text, Hidden)
	return after
}

func longerFirst(a, b string) int {
	if len(a) != len(b) {
		return len(b) - len(a)
	}
	return strings.Compare(a, b)
}
