// SPDX-License-Identifier: Apache-2.0

package drives

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// How long the texts of a BMC may be.
const (
	maxText     = 256
	maxProtocol = 64
)

// doc is a JSON object. Its methods read what is of the wrong type as absent, because BMCs send numbers for strings
// and null for all.
type doc map[string]any

func decode(raw []byte) doc {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var body doc
	if d.Decode(&body) != nil {
		return nil
	}
	return body
}

// object is a nested object; nil where there is none.
func (d doc) object(key string) doc {
	nested, _ := d[key].(map[string]any)
	return nested
}

// objects are the objects of an array.
func (d doc) objects(key string) []doc {
	all, _ := d[key].([]any)
	var out []doc
	for _, one := range all {
		if nested, ok := one.(map[string]any); ok {
			out = append(out, nested)
		}
	}
	return out
}

// text is a string at the end of a path of objects; a number is taken literally.
func (d doc) text(path ...string) string {
	for len(path) > 1 {
		d, path = d.object(path[0]), path[1:]
	}
	switch value := d[path[0]].(type) {
	case string:
		return strings.TrimSpace(value)
	case json.Number:
		return value.String()
	}
	return ""
}

func (d doc) first(keys ...string) string {
	for _, key := range keys {
		if text := clean(d.text(key), maxText); text != "" {
			return text
		}
	}
	return ""
}

// number is a count that fits; 0 where there is none.
func (d doc) number(key string) int64 {
	f, err := strconv.ParseFloat(d.text(key), 64)
	if err != nil || math.IsNaN(f) || f <= 0 || f >= math.MaxInt64 {
		return 0
	}
	if n, err := strconv.ParseInt(d.text(key), 10, 64); err == nil {
		return n
	}
	return int64(f)
}

// links are the references of an array.
func (d doc) links(key string) []string {
	all, _ := d[key].([]any)
	var out []string
	for _, one := range all {
		if uri := reference(one); uri != "" {
			out = append(out, uri)
		}
	}
	return out
}

func reference(value any) string {
	switch value := value.(type) {
	case map[string]any:
		return doc(value).text("@odata.id")
	case string:
		if strings.HasPrefix(value, "/") {
			return value
		}
	}
	return ""
}

// canonical is a URI as it is compared: BMCs differ in case and in the slash at the end.
func canonical(uri string) string { return strings.ToLower(strings.TrimRight(uri, "/")) }

func lastSegment(uri string) string {
	uri = strings.TrimRight(uri, "/")
	return uri[strings.LastIndexByte(uri, '/')+1:]
}

// clean makes a BMC's text fit to be stored: valid, printable, on one line, at most limit bytes.
func clean(s string, limit int) string {
	control := func(r rune) bool { return r < ' ' || r == 0x7f }
	s = strings.TrimSpace(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "?"), control), " "))
	if len(s) > limit {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:limit], ""))
	}
	return s
}
