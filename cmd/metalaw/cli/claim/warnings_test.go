// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryClaimThatIsTriedShowsItsOwnWarnings(t *testing.T) {
	const warning = "no server of the fleet can satisfy the claim"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		group, version := path.Split(strings.TrimPrefix(r.URL.Path, "/apis/"))
		resource := func(name, kind string) string {
			return fmt.Sprintf(`{"name":%q,"kind":%q,"namespaced":%t,"verbs":["create","get","list"]}`, name, kind, kind == "ServerClaim")
		}
		answer := `{"kind":"APIVersions","versions":[]}`
		switch {
		case r.Method == http.MethodPost:
			w.Header().Add("Warning", fmt.Sprintf("299 - %q", warning))
			stored, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			answer = string(stored)
		case strings.HasSuffix(r.URL.Path, "/v1alpha1"):
			answer = fmt.Sprintf(`{"kind":"APIResourceList","groupVersion":"%s%s","resources":[%s]}`, group, version, strings.Join([]string{
				resource("servers", "Server"), resource("serverclaims", "ServerClaim"), resource("serverinventories", "ServerInventory"),
				resource("policyrevisions", "PolicyRevision"), resource("fleetcontrols", "FleetControl")}, ","))
		case strings.Contains(r.URL.Path, "/v1alpha1/"):
			answer = `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`
		case r.URL.Path == "/apis":
			answer = `{"kind":"APIGroupList","groups":[]}`
		case strings.HasPrefix(r.URL.Path, "/apis/"):
			answer = fmt.Sprintf(`{"kind":"APIGroup","name":%q,"versions":[{"groupVersion":"%s/v1alpha1","version":"v1alpha1"}]}`, version, version)
		}
		if _, err := io.WriteString(w, answer); err != nil {
			t.Error(err)
		}
	}))
	defer api.Close()
	none := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out, complaints bytes.Buffer
	try := Commands()[1]
	try.SetArgs([]string{"try", "-f", "-", "-n", "team", "-o", "json", "--server", api.URL, "--kubeconfig", none})
	claims := ""
	for _, name := range []string{"a", "b"} {
		claims += "---\n" + head + "metadata: {name: " + name + "}\nspec: {power: \"On\", image: os}\n"
	}
	try.SetIn(strings.NewReader(claims))
	try.SetOut(&out)
	try.SetErr(&complaints)
	try.SilenceUsage, try.SilenceErrors = true, true
	failed := try.Execute() // no server is there, so that both would wait
	var said struct {
		Claims []struct {
			Name      string
			Admission admission
		}
	}
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatal(failed, err, out.String(), complaints.String())
	}
	got := map[string][]string{}
	for _, c := range said.Claims {
		got[c.Name] = c.Admission.Warnings
	}
	if diff := cmp.Diff(map[string][]string{"a": {warning}, "b": {warning}}, got); diff != "" {
		t.Error(diff)
	}
	if complaints.Len() > 0 {
		t.Errorf("on standard error: %s", complaints.String())
	}
}
