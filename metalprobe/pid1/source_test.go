// SPDX-License-Identifier: Apache-2.0

package pid1

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/metalaw/metalaw/metalprobe"
)

const uuid = "44454c4c-4200-1035-8054-b7c04f4d4d32"

func config(registry string) string {
	return fmt.Sprintf(`{"registryURL":%q,"token":"t","purpose":"wipe","entry":3}`, registry)
}

func ignition(content string) string {
	text, err := json.Marshal(map[string]any{
		"ignition": map[string]any{"version": "3.3.0"},
		"storage": map[string]any{"files": []any{map[string]any{"path": metalprobe.ConfigPath,
			"contents": map[string]any{"source": "data:;base64," + base64.StdEncoding.EncodeToString([]byte(content))}}}},
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// mediaOf offers media in this order.
func mediaOf(all ...fs.FS) func(context.Context) (metalprobe.Config, error) {
	return func(context.Context) (metalprobe.Config, error) {
		for _, medium := range all {
			if config, err := readMedium(medium); !errors.Is(err, errNone) {
				return config, err
			}
		}
		return metalprobe.Config{}, errNone
	}
}

func TestSourcesAreAskedInOrder(t *testing.T) {
	file := fstest.MapFS{"etc/metalprobe/config.json": {Data: []byte(config("https://file"))}}
	bad := fstest.MapFS{"etc/metalprobe/config.json": {Data: []byte("{}")}}
	plain := fstest.MapFS{"metalprobe/config.json": {Data: []byte(config("https://cd"))}, "ignition.json": {Data: []byte("not asked")}}
	ignited := fstest.MapFS{"ignition.json": {Data: []byte(ignition(config("https://cd-ignition")))}}
	other := fstest.MapFS{"README": {}}
	workload := fstest.MapFS{"ignition.json": {Data: []byte(`{"ignition":{"version":"3.3.0"}}`)}}
	shown := fstest.MapFS{"sys/class/dmi/id/product_uuid": {Data: []byte(uuid + "\n")}}
	for name, c := range map[string]struct {
		root  fs.FS
		media []fs.FS
		url   string
		want  string
		from  string
		err   string
	}{
		"the file goes before all":                {file, []fs.FS{plain}, "http://h/i", "https://file", "/etc/metalprobe/config.json", ""},
		"a file that is wrong is not passed over": {bad, []fs.FS{plain}, "", "", "", "registryURL"},
		"a medium goes before the URL":            {shown, []fs.FS{plain}, "http://h/i", "https://cd", "the medium", ""},
		"a medium without any is passed over":     {shown, []fs.FS{other, ignited}, "", "https://cd-ignition", "the medium", ""},
		"an ignition of something else is told":   {shown, []fs.FS{workload}, "", "", "", "holds no /etc/metalprobe/config.json"},
		"the URL, with the UUID of the machine":   {shown, nil, "http://h/ignition/{uuid}", "http://h/ignition/" + uuid, "http://h", ""},
		"a URL that does not answer":              {shown, nil, "http://h/down", "", "", "status 404"},
		"nothing names one":                       {shown, []fs.FS{other}, "", "", "", "kernel command line names no ignition.config.url"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &sources{root: c.root, media: mediaOf(c.media...), url: c.url, fetch: func(_ context.Context, url string) ([]byte, error) {
				if strings.HasSuffix(url, "/down") {
					return nil, errors.New("status 404")
				}
				return []byte(ignition(config(url))), nil
			}}
			got, from, err := s.look(t.Context())
			if (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if err == nil && (got.RegistryURL != c.want || from != c.from) {
				t.Errorf("got %q from %q, want %q from %q", got.RegistryURL, from, c.want, c.from)
			}
		})
	}
}

func TestAConfigurationMayComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := fstest.MapFS{}
		began := time.Now()
		var said []string
		s := &sources{root: root, media: mediaOf(), url: "http://h/secret-nonce", fetch: func(context.Context, string) ([]byte, error) {
			if time.Since(began) < 65*time.Second {
				return nil, errors.New("status 404")
			}
			return []byte(ignition(config("https://r"))), nil
		}}
		got, ok := s.wait(t.Context(), func(format string, args ...any) {
			said = append(said, fmt.Sprintf("%s %s", time.Since(began), fmt.Sprintf(format, args...)))
		}, func() {})
		if !ok || got.RegistryURL != "https://r" {
			t.Errorf("got %+v, %t", got, ok)
		}
		want := []string{"0s http://h: status 404; trying again", "35s http://h: status 404; trying again",
			"1m5s from http://h: server as the firmware says, purpose wipe, registry https://r"}
		if !slices.Equal(said, want) {
			t.Errorf("said %q\nwant %q", said, want)
		}
	})
}

func TestFetcher(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/there":
			_, _ = w.Write([]byte("text"))
		case "/away":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/large":
			_, _ = w.Write(make([]byte, maxConfig+1))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	server.Config.ErrorLog = nil
	trusting := fstest.MapFS{caPath: {Data: pemOf(server)}}
	for name, c := range map[string]struct {
		root fs.FS
		path string
		err  string
	}{
		"an authority of the image":    {trusting, "/there", ""},
		"an authority of another":      {fstest.MapFS{}, "/there", "certificate"},
		"an authority that is none":    {fstest.MapFS{caPath: {Data: []byte("x")}}, "/there", "no PEM certificate"},
		"what is not there":            {trusting, "/gone", "status 404"},
		"a redirect is not followed":   {trusting, "/away", "status 302"},
		"what is larger than any file": {trusting, "/large", "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fetcher(c.root)(t.Context(), server.URL+c.path)
			if (err == nil) != (c.err == "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			if err == nil && string(got) != "text" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func FuzzReadMedium(f *testing.F) {
	f.Add([]byte(config("https://r")), []byte(ignition(config("https://r"))))
	f.Add([]byte(nil), []byte(`{"ignition":{"version":"3.0.0"}}`))
	f.Fuzz(func(t *testing.T, plain, ignited []byte) {
		medium := fstest.MapFS{"ignition.json": {Data: ignited}}
		if len(plain) > 0 {
			medium["metalprobe/config.json"] = &fstest.MapFile{Data: plain}
		}
		if got, err := readMedium(medium); err == nil && got.RegistryURL == "" {
			t.Errorf("%+v was accepted", got)
		}
	})
}
