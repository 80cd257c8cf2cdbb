// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// apiMetrics is what the driver takes from the API server's metrics.
type apiMetrics struct {
	CPUSeconds float64
	Requests   apiRequests
}

// apiRequests counts the requests that the API server answered, of all users.
type apiRequests map[apiRequest]int

// apiRequest is one kind of request, as the API server's metrics tell them apart.
type apiRequest struct{ Verb, Resource, Subresource, Code string }

// minus is what was added since an earlier reading.
func (r apiRequests) minus(earlier apiRequests) apiRequests {
	added := apiRequests{}
	for k, n := range r {
		if d := n - earlier[k]; d > 0 {
			added[k] = d
		}
	}
	return added
}

const (
	metricCPU      = "process_cpu_seconds_total"
	metricRequests = "apiserver_request_total"
)

// readAPIMetrics reads the text format of Prometheus.
func readAPIMetrics(r io.Reader) (apiMetrics, error) {
	metrics := apiMetrics{Requests: apiRequests{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	found := false
	for lines.Scan() {
		text := lines.Text()
		isCPU := strings.HasPrefix(text, metricCPU)
		if !isCPU && !strings.HasPrefix(text, metricRequests) {
			continue
		}
		s, err := parseSample(text)
		if err != nil {
			return metrics, fmt.Errorf("metrics of the API server: %w", err)
		}
		switch s.name {
		case metricCPU:
			metrics.CPUSeconds, found = s.value, true
		case metricRequests:
			resource := s.labels["resource"]
			if group := s.labels["group"]; group != "" && resource != "" {
				resource += "." + group
			}
			metrics.Requests[apiRequest{s.labels["verb"], resource, s.labels["subresource"], s.labels["code"]}] += int(s.value)
		}
	}
	if err := lines.Err(); err != nil {
		return metrics, fmt.Errorf("metrics of the API server: %w", err)
	}
	if !found {
		return metrics, fmt.Errorf("metrics of the API server: no %s among them", metricCPU)
	}
	return metrics, nil
}

// readPasses adds up what the manager's metrics say of its scheduler of maintenances.
func readPasses(r io.Reader) (passes, error) {
	var sum passes
	into := map[string]*float64{"controller_runtime_reconcile_total": &sum.count, "controller_runtime_reconcile_time_seconds_sum": &sum.seconds}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), `"`+scheduler+`"`) {
			continue
		}
		s, err := parseSample(lines.Text())
		if err != nil {
			return sum, fmt.Errorf("metrics of the manager: %w", err)
		}
		if total := into[s.name]; total != nil && s.labels["controller"] == scheduler {
			*total += s.value
		}
	}
	return sum, lines.Err()
}

// sample is one line of the text format.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// parseSample reads name{label="value",...} value [time].
func parseSample(line string) (sample, error) {
	s := sample{labels: map[string]string{}}
	end := strings.IndexAny(line, "{ ")
	if end <= 0 {
		return s, fmt.Errorf("%.80q: want a name and a value", line)
	}
	s.name = line[:end]
	rest := line[end:]
	if rest[0] == '{' {
		var err error
		if rest, err = parseLabels(rest[1:], s.labels); err != nil {
			return s, fmt.Errorf("%.80q: %w", line, err)
		}
	}
	fields := strings.Fields(rest)
	if len(fields) < 1 || len(fields) > 2 {
		return s, fmt.Errorf("%.80q: want one value and at most a time after it", line)
	}
	var err error
	if s.value, err = strconv.ParseFloat(fields[0], 64); err != nil {
		return s, fmt.Errorf("%.80q: %w", line, err)
	}
	return s, nil
}

var errLabels = errors.New(`labels are name="value", separated by commas, up to a closing brace`)

// parseLabels reads up to the closing brace and returns what follows it.
func parseLabels(text string, into map[string]string) (rest string, err error) {
	for {
		text = strings.TrimLeft(text, ", ")
		if rest, closed := strings.CutPrefix(text, "}"); closed {
			return rest, nil
		}
		name, quoted, found := strings.Cut(text, `="`)
		if !found || name == "" {
			return "", errLabels
		}
		value, after, err := unquote(quoted)
		if err != nil {
			return "", err
		}
		into[name], text = value, after
	}
}

// unquote reads a label's value up to its closing quote.
func unquote(text string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], nil
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errLabels
}
