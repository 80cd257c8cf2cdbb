// SPDX-License-Identifier: Apache-2.0

package env

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestAWarningThatIsToleratedFailsNoApply(t *testing.T) {
	const format = `unrecognized format "ip"`
	ofFormat := func(warning string) bool { return warning == format }
	for name, c := range map[string]struct {
		warnings  []string
		tolerates func(string) bool
		want      string
	}{
		"there is none":                   {nil, nil, ""},
		"it is tolerated":                 {[]string{format, format}, ofFormat, ""},
		"nothing is tolerated":            {[]string{format}, nil, format},
		"another warning comes beside it": {[]string{format, "deprecated"}, ofFormat, "deprecated"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for _, warning := range c.warnings {
					w.Header().Add("Warning", `299 - "`+strings.ReplaceAll(warning, `"`, `\"`)+`"`)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`)) // the client is the test's own
			}))
			defer server.Close()
			a := &applier{warnings: &warningCollector{}, tolerates: c.tolerates}
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, WarningHandlerWithContext: a.warnings})
			if err != nil {
				t.Fatal(err)
			}
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
			a.dynamic, a.mapper = client, mapper
			err = a.apply(t.Context(), object("v1", "Namespace", "", "a", nil))
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), "warns: "+c.want)):
				t.Errorf("got %v, want the warning %s alone", err, c.want)
			}
		})
	}
}
