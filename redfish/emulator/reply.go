// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reply is an answer in bytes, as faults have left it.
type reply struct {
	status   int
	header   http.Header
	body     []byte
	pad      int64
	truncate int
	rate     int
	close    bool
	after    func()
}

// replaced is the answer that a fault gives instead.
func (x *exchange) replaced(a *Action) answer {
	status := a.Status
	result := answer{header: http.Header{}}
	if a.Redirect != "" {
		if status == 0 {
			status = http.StatusFound
		}
		result.header.Set("Location", strings.ReplaceAll(a.Redirect, "{path}", x.req.URL.Path))
	}
	result.status = status
	switch {
	case a.Body != "":
		result.body = json.RawMessage(strings.ReplaceAll(a.Body, "{path}", x.req.URL.Path))
	case status >= http.StatusBadRequest:
		result.body = errorBody("Base.1.13.GeneralError", http.StatusText(status))
	}
	return result
}

// render makes bytes of an answer.
func (x *exchange) render(a answer) *reply {
	r := &reply{status: a.status, header: http.Header{}, after: a.after}
	maps.Copy(r.header, a.header)
	r.header.Set("OData-Version", "4.0")
	r.header.Set("Cache-Control", "no-cache")
	switch body := a.body.(type) {
	case nil:
	case json.RawMessage:
		// A fault's body need not be JSON; it is sent as it is.
		r.body = body
		r.header.Set("Content-Type", "application/json; charset=utf-8")
	default:
		raw, err := json.Marshal(body)
		if err != nil {
			r.status, raw = http.StatusInternalServerError, []byte(strconv.Quote(err.Error()))
		}
		r.body = raw
		r.header.Set("Content-Type", "application/json; charset=utf-8")
	}
	return r
}

// spoil applies what a fault does to an answer.
func (r *reply) spoil(a *Action, path string) {
	for k, v := range a.Header {
		if v == "" {
			r.header.Del(k)
		} else {
			r.header.Set(k, v)
		}
	}
	if len(a.Set) > 0 || len(a.Remove) > 0 {
		var body any
		if json.Unmarshal(r.body, &body) == nil {
			for k, v := range a.Set {
				if s, isText := v.(string); isText {
					v = strings.ReplaceAll(s, "{path}", path)
				}
				body = setField(body, strings.Split(k, "/"), v)
			}
			for _, k := range a.Remove {
				body = setField(body, strings.Split(k, "/"), removed)
			}
			if raw, err := json.Marshal(body); err == nil {
				r.body = raw
			}
		}
	}
	r.pad = max(r.pad, a.PadTo)
	if a.Truncate > 0 {
		r.truncate = a.Truncate
	}
	if a.BytesPerSecond > 0 {
		r.rate = a.BytesPerSecond
	}
	r.close = r.close || a.CloseConnection
}

type removal struct{}

// removed as a value of setField takes the field out.
var removed = removal{}

// setField replaces one field of a JSON value and makes the objects on the way. A path that leads through something
// else than an object or an existing list entry changes nothing.
func setField(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch v := v.(type) {
	case map[string]any:
		if len(path) == 1 && value == any(removed) {
			delete(v, path[0])
			return v
		}
		inner, there := v[path[0]]
		if !there && value == any(removed) {
			return v
		}
		if !there && len(path) > 1 {
			inner = map[string]any{}
		}
		v[path[0]] = setField(inner, path[1:], value)
	case []any:
		i, err := strconv.Atoi(path[0])
		if err == nil && i >= 0 && i < len(v) {
			if len(path) == 1 && value == any(removed) {
				return append(v[:i:i], v[i+1:]...)
			}
			v[i] = setField(v[i], path[1:], value)
		}
	}
	return v
}

// send writes a reply and then runs what comes after it.
func (x *exchange) send(w http.ResponseWriter, r *reply) {
	x.fleet.log.change(x.write, func(entry *Write) { entry.Status = r.status })
	maps.Copy(w.Header(), r.header)
	if r.close || r.after != nil {
		w.Header().Set("Connection", "close")
	}
	body := r.body
	if missing := r.pad - int64(len(body)); missing > 0 && len(body) > 1 && body[len(body)-1] == '}' {
		x.sendPadded(w, r.status, body, missing)
		return
	}
	if r.status != http.StatusNoContent && r.status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(r.status)
	if x.req.Method == http.MethodHead || r.status == http.StatusNoContent || r.status == http.StatusNotModified {
		body = nil
	}
	if r.truncate > 0 && r.truncate < len(body) {
		body = body[:r.truncate] // the server then closes the connection, because Content-Length promised more
	}
	if !x.writeBody(w, body, r.rate) {
		return
	}
	if r.after != nil {
		_ = http.NewResponseController(w).Flush() // a client that left does not need the answer
		r.after()
	}
}

// writeBody sends body, slowly where rate (bytes per second) says so. It returns false where the client left.
func (x *exchange) writeBody(w http.ResponseWriter, body []byte, rate int) bool {
	if rate <= 0 {
		_, err := w.Write(body)
		return len(body) == 0 || err == nil
	}
	control := http.NewResponseController(w)
	for i := range body {
		if _, err := w.Write(body[i : i+1]); err != nil || control.Flush() != nil {
			return false
		}
		if !sleep(x.req.Context(), x.fleet.clock, time.Second/time.Duration(rate)) {
			return false
		}
	}
	return true
}

// sendPadded sends an object with one more field that is as long as is missing.
func (x *exchange) sendPadded(w http.ResponseWriter, status int, body []byte, missing int64) {
	w.WriteHeader(status)
	if _, err := w.Write(body[:len(body)-1]); err != nil {
		return
	}
	comma := ","
	if len(body) == 2 {
		comma = ""
	}
	if _, err := fmt.Fprintf(w, `%s"Padding":"`, comma); err != nil {
		return
	}
	chunk := []byte(strings.Repeat("x", 64<<10))
	for missing > 0 {
		n := min(missing, int64(len(chunk)))
		if _, err := w.Write(chunk[:n]); err != nil {
			return
		}
		missing -= n
	}
	// The end may fail like the middle: the client left.
	_, _ = w.Write([]byte(`"}`))
}
