// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// metric is one metric as it is declared.
type metric struct {
	name, kind, help string
	labels           []string
}

func metricsPage(root string) (string, error) {
	s, err := parseFolders(root, "controllers", "webhooks", "metalprobe", "redfish", "cmd")
	if err != nil {
		return "", err
	}
	all, err := fromCalls(s, s.files, metricOf)
	if err != nil {
		return "", err
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	m := newPage("Metrics", "the declarations in the code")
	m.paragraph("The manager serves these at `/metrics` (`--metrics-bind-address`), over TLS and to whom RBAC lets read them " +
		"(ClusterRole `metalaw-metrics-reader`) unless `--metrics-secure=false`. " +
		"controller-runtime adds its own: work queues, reconciles, requests to the API server. " +
		"No label holds the name of a server, a BMC or a claim, so that the number of series does not grow with the fleet.")
	tableOf(m, []string{"metric", "type", "labels", "meaning"}, all, func(one metric) []string {
		return []string{code(one.name), one.kind, codes(one.labels), one.help}
	})
	return m.text(), nil
}

// metricOf reads prometheus.New...(prometheus.Opts{...}, labels) and prometheus.NewDesc(name, help, labels, nil).
func metricOf(s *source, f *file, call *ast.CallExpr) (metric, bool, error) {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return metric{}, false, nil
	}
	if x, isName := function.X.(*ast.Ident); !isName || x.Name != "prometheus" {
		return metric{}, false, nil
	}
	kind := strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(function.Sel.Name, "New"), "Vec"))
	var one metric
	var labels ast.Expr
	switch kind {
	case "counter", "gauge", "histogram", "summary":
		options, isLiteral := call.Args[0].(*ast.CompositeLit)
		if !isLiteral {
			return metric{}, false, fmt.Errorf("%s: the options of %s are not written in place", f.path, function.Sel.Name)
		}
		one = metric{name: fieldText(s, f, options, "Name"), kind: kind, help: fieldText(s, f, options, "Help")}
		if len(call.Args) > 1 {
			labels = call.Args[1]
		}
	case "desc":
		one.kind = "gauge"
		one.name, _ = s.evaluate(f, call.Args[0])
		one.help, _ = s.evaluate(f, call.Args[1])
		labels = call.Args[2]
	default:
		return metric{}, false, nil
	}
	if list, isLiteral := labels.(*ast.CompositeLit); isLiteral {
		for _, e := range list.Elts {
			label, known := s.evaluate(f, e)
			if !known {
				return metric{}, false, fmt.Errorf("%s: a label of %s is not a constant", f.path, one.name)
			}
			one.labels = append(one.labels, label)
		}
	}
	if one.name == "" || one.help == "" {
		return metric{}, false, fmt.Errorf("%s: a metric has no constant Name or Help", f.path)
	}
	return one, true, nil
}

func fieldText(s *source, f *file, literal *ast.CompositeLit, name string) string {
	for _, e := range literal.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				text, _ := s.evaluate(f, pair.Value)
				return text
			}
		}
	}
	return ""
}
