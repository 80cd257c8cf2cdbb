// SPDX-License-Identifier: Apache-2.0

// Package capture copies the Redfish tree of a BMC, takes out of it what identifies its owner, and packs it in the form that
// the emulator reads.
package capture

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Options bound a capture.
type Options struct {
	// Most is the largest number of resources; 0 is DefaultMost.
	Most int
	// Progress is told of each resource that was read; nil tells nobody.
	Progress func(uri string, read int)
}

// DefaultMost is more than the largest tree seen, which has 4,726 resources.
const DefaultMost = 10_000

// Tree holds the resources of a BMC as JSON, by path. A path has no trailing slash.
type Tree map[string][]byte

// root is where a Redfish service begins (DSP0266, 6.3).
const root = "/redfish/v1"

// leftOut are parts that are large, and hold nothing of the machine or too much of its owner: schema stores, log entries,
// sessions and accounts.
var leftOut = []string{"/jsonschemas", "/$metadata", "/odata", "/sessionservice/sessions", "/accountservice/accounts", "/entries", "/certificates", "/keys"}

// Crawl reads every resource that can be reached by links from the service root. What cannot be read is a problem and is left out;
// an error says that the service root cannot be read or that ctx ended. get reads one resource.
func Crawl(ctx context.Context, get func(ctx context.Context, uri string) ([]byte, error), options Options) (Tree, []string, error) {
	most := options.Most
	if most <= 0 {
		most = DefaultMost
	}
	tree, seen, problems := Tree{}, map[string]bool{root: true}, []string(nil)
	for queue := []string{root}; len(queue) > 0; queue = queue[1:] {
		uri := queue[0]
		if len(tree) >= most {
			return tree, append(problems, fmt.Sprintf("only the first %d resources were read; %d more are known", most, len(queue))), nil
		}
		body, err := get(ctx, uri)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil && uri == root {
			return nil, nil, err
		}
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		var document any
		if err := json.Unmarshal(body, &document); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", uri, err))
			continue
		}
		tree[uri] = body
		if options.Progress != nil {
			options.Progress(uri, len(tree))
		}
		for _, link := range links(document) {
			if !seen[link] {
				seen[link] = true
				queue = append(queue, link)
			}
		}
	}
	return tree, problems, nil
}

// links are the resources that a document names by @odata.id, and the pages of a collection that follow.
func links(document any) []string {
	var found []string
	var visit func(value any)
	visit = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, below := range v {
				target, isText := below.(string)
				if isText && (key == "@odata.id" || strings.HasSuffix(key, "@odata.nextLink")) {
					if uri, usable := resource(target); usable {
						found = append(found, uri)
					}
					continue
				}
				visit(below)
			}
		case []any:
			for _, below := range v {
				visit(below)
			}
		}
	}
	visit(document)
	slices.Sort(found)
	return slices.Compact(found)
}

// resource is the path of a link within the service, without a fragment; usable is false for what is left out.
func resource(link string) (uri string, usable bool) {
	link, _, _ = strings.Cut(link, "#")
	link, query, _ := strings.Cut(link, "?")
	uri = path.Clean(link)
	if uri != root && !strings.HasPrefix(uri, root+"/") {
		return "", false
	}
	lower := strings.ToLower(strings.TrimPrefix(uri, root))
	for _, part := range leftOut {
		if strings.HasPrefix(lower, part) || strings.HasSuffix(lower, part) || strings.Contains(lower, part+"/") {
			return "", false
		}
	}
	if query != "" {
		uri += "?" + query
	}
	return uri, true
}
