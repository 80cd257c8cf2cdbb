// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects is one more than any BMC was seen to need (a missing or surplus slash).
const maxRedirects = 3

// refuseRedirects is the http.Client policy: a read may be redirected within the same scheme and host, nothing else is.
// Go would otherwise carry X-Auth-Token to any host and repeat a login body on a 307. The 3xx answer is handed to the
// caller, which reports it, or follows it as respelled allows.
func refuseRedirects(req *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || req.Method != http.MethodGet || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	if !sameService(first.URL, req.URL) {
		return http.ErrUseLastResponse
	}
	return nil
}

func sameService(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(hostPort(a.Scheme, a.Host), hostPort(b.Scheme, b.Host))
}

// hostPort adds the scheme's default port where host has none.
func hostPort(scheme, host string) string {
	if strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']') {
		return host
	}
	if scheme == "http" {
		return host + ":80"
	}
	return host + ":443"
}

// leadsTo resolves the Location of a redirect; nil where it has none that can be used.
func leadsTo(asked *url.URL, got *answer) *url.URL {
	location := got.header.Get("Location")
	if location == "" {
		return nil
	}
	to, err := asked.Parse(location)
	if err != nil || to.Host == "" || to.User != nil {
		return nil
	}
	return to
}

// respelled is the path to which a write was redirected, if it differs by a slash at the end or by case alone; else empty,
// because on a BMC with several systems it may be another machine.
// Evidence: older Supermicro BMCs redirect a login to the path with a slash: bb-Ricardo/check_redfish pull request 187.
func respelled(asked *url.URL, got *answer) string {
	switch got.status { // 302 and 303 do not say that the request is to be repeated
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return ""
	}
	to := leadsTo(asked, got)
	if to == nil || !sameService(asked, to) || to.RawQuery != asked.RawQuery || to.Path == asked.Path {
		return ""
	}
	from, there := strings.TrimSuffix(asked.EscapedPath(), "/"), strings.TrimSuffix(to.EscapedPath(), "/")
	if len(from) != len(there) || !strings.EqualFold(from, there) {
		return ""
	}
	return to.EscapedPath()
}

// placeThere is how the other spelling of a path spells the resource at uri, which the path leads through; uri where it
// does not.
func placeThere(uri, path, other string) string {
	at := strings.TrimSuffix(uri, "/")
	switch {
	case len(path) < len(at) || len(other) < len(at) || !strings.EqualFold(path[:len(at)], at):
		return uri
	case strings.Trim(path[len(at):], "/") == "": // the resource itself
		return other
	case path[len(at)] != '/':
		return uri
	}
	return other[:len(at)]
}

// redirectWords say where a redirect leads that was not followed, and which field follows it.
func redirectWords(asked *url.URL, got *answer) string {
	to := leadsTo(asked, got)
	if to == nil {
		return "a redirect that does not say where to; check the BMC's address, port and scheme"
	}
	target := to.Scheme + "://" + to.Host + redactPath(to.EscapedPath())
	words := "a redirect to " + clip(target, 200) + ", which is not followed; "
	port := to.Port()
	if port == "" {
		_, port, _ = strings.Cut(hostPort(to.Scheme, "x"), ":")
	}
	switch {
	case !strings.EqualFold(to.Hostname(), asked.Hostname()):
		return words + "if the BMC is there, set its address, or spec.hostname, to " + clip(to.Hostname(), 100)
	case to.Scheme != asked.Scheme && asked.Scheme == "https": // to follow it would show the password on the wire
		return words + "the BMC leads away from TLS; have it serve HTTPS without a redirect"
	case to.Scheme != asked.Scheme:
		return words + "set spec.protocol.scheme to " + clip(to.Scheme, 20) + " and spec.protocol.port to " + port
	case !sameService(asked, to):
		return words + "set spec.protocol.port to " + port
	case to.EscapedPath() == asked.EscapedPath():
		return words + "it leads to the same place; restart the BMC, or update its firmware"
	}
	return words + "it may be another machine's; if it is not, set the Server's spec.systemURI to that spelling"
}

// about proves that a write would reach what it is about at another spelling of its path.
type about func(path, other string) error

var errUnproven = errors.New("the BMC redirects the write, and nothing proves what it would reach there")

// proven wraps what the proof says. A write about nothing that can be read is not repeated.
func (a about) proven(method, path, other string) error {
	err := errUnproven
	if a != nil {
		err = a(path, other)
	}
	if err == nil {
		return nil
	}
	return &NotAskedError{What: method + " " + redactPath(other), Err: err}
}

// spelled is where a write goes: to the spelling of its path that the BMC redirected to before.
func (c *client) spelled(method, path string) string {
	if other := c.recall().spelled[path]; other != "" && writes(method) {
		return other
	}
	return path
}

// elsewhere is the other spelling of its path to which a write was redirected; empty where it is not made once more.
func (c *client) elsewhere(method, path string, got *answer) string {
	asked, err := c.resolve(path)
	if err != nil || !writes(method) {
		return ""
	}
	return respelled(asked, got)
}

// keepSpelling remembers how the BMC spells the path of a write, and forgets a spelling that does not serve any more. A
// session is ended once, so that its spelling is not worth keeping.
func (c *client) keepSpelling(method, path, sentTo string, got *answer) {
	if path == sentTo || method == http.MethodDelete {
		return
	}
	c.learn(func(m *memory) {
		m.spelled = maps.Clone(m.spelled) // what recall handed out is read without the lock
		if m.spelled == nil {
			m.spelled = map[string]string{}
		}
		delete(m.spelled, path)
		if got.status >= 200 && got.status < 300 {
			m.spelled[path] = sentTo
		}
	})
}
