// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/engine/internal/yamlpos"
)

// PartsFile is the file that lists files of a bundle which are kept elsewhere; it is no file of the bundle itself.
const PartsFile = "manifest.yaml"

// maxParts is how many files a manifest may list: each is fetched from the API server by itself, while a user waits for
// an answer.
const maxParts = 32

// Codes of files that a manifest lists and that are not there yet, or are not there any more.
const (
	CodePartMissing = "manifest-part-missing"
	CodePartDiffers = "manifest-part-differs"
)

// codePartName is the code of a name that no file or no part can have.
const codePartName = "manifest-name"

// Part is one file that a manifest lists.
type Part struct {
	// Name is the file's, and ConfigMap is where it is kept, under its name.
	Name, ConfigMap string
	// Digest is that of its bytes: sha256: and lower-case hex.
	Digest string
}

// Assemble puts a bundle together: the files of its head, and those that the head's manifest lists. name is that of the head's
// ConfigMap, empty where it is none; part gives a file of another. The files are whole only where nothing is found; Incomplete
// tells a half-written bundle from a broken one.
func Assemble(name string, head map[string]string, part func(configMap, file string) (text string, ok bool)) (Files, diag.List) {
	files := make(Files, len(head))
	for file, text := range head {
		if file != PartsFile {
			files[file] = []byte(text)
		}
	}
	list, ok := head[PartsFile]
	if !ok {
		return files, nil
	}
	parts, places, found := parseParts([]byte(list))
	for i, p := range parts {
		at := diag.Diagnostic{Severity: diag.Error, File: PartsFile, Line: places[i].Line, Column: places[i].Column, Rule: p.Name}
		_, twice := files[p.Name]
		text, there, self := "", false, p.ConfigMap == name
		if !self {
			text, there = part(p.ConfigMap, p.Name)
		}
		switch {
		case twice:
			at.Code, at.Message = "manifest-twice", p.Name+" is given twice"
			at.Hint = "a file is either in the head or in one part"
		case self:
			at.Code, at.Message = codePartName, fmt.Sprintf("the manifest of ConfigMap %s names that ConfigMap itself", name)
			at.Hint = "name the ConfigMap that holds " + p.Name + ", or put the file into this one and take it out of the manifest"
		case !there:
			at.Code, at.Message = CodePartMissing, fmt.Sprintf("ConfigMap %s does not hold %s", p.ConfigMap, p.Name)
			at.Hint = "apply it, in the same namespace and with the label policy.metalaw.dev/bundle-part"
		case fileDigest(text) != p.Digest:
			at.Code, at.Message = CodePartDiffers, fmt.Sprintf("%s in ConfigMap %s has digest %s, and the manifest says %s",
				p.Name, p.ConfigMap, fileDigest(text), p.Digest)
			at.Hint = "apply the parts and the head of the same version"
		default:
			files[p.Name] = []byte(text)
			continue
		}
		found = append(found, at)
	}
	return files, found
}

// Incomplete says that all that is wrong is that parts are missing or of another version, which time may mend.
func Incomplete(found diag.List) bool {
	return len(found) > 0 && !slices.ContainsFunc(found, func(d diag.Diagnostic) bool {
		return d.Severity == diag.Error && d.Code != CodePartMissing && d.Code != CodePartDiffers
	})
}

func fileDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// maxObjectName is the longest name that an object can have.
const maxObjectName = 253

// fileName is a key that a ConfigMap can have.
var fileName = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Parts are the files that a manifest lists, as far as it can be read.
func Parts(manifest string) []Part {
	parts, _, _ := parseParts([]byte(manifest))
	return parts
}

// Is says that a text is the file as the manifest lists it.
func (p Part) Is(text string) bool { return fileDigest(text) == p.Digest }

// parseParts reads a manifest. Each part has its place at the same index.
func parseParts(data []byte) (parts []Part, places []*yaml.Node, found diag.List) {
	f := yamlpos.Parse(PartsFile, data)
	if f.Root == nil {
		return nil, nil, f.Found
	}
	given := readKeys(f, f.Root, "the manifest",
		key{"apiVersion", word(new(string), "policy.metalaw.dev/v1alpha1")},
		key{"kind", word(new(string), "Manifest")},
		key{"files", func(f *yamlpos.File, k yamlpos.Field) {
			items := f.Items(k.Value, k.Name)
			if len(items) > maxParts {
				f.Errorf(items[maxParts], "manifest-too-many", "", "put several files into the head, and list only what is too large for it",
					"the manifest lists %d files and may list %d", len(items), maxParts)
			}
			for _, item := range items[:min(len(items), maxParts)] {
				if p, ok := parsePart(f, item); ok {
					parts, places = append(parts, p), append(places, item)
				}
			}
		}})
	if len(f.Found) == 0 && !(slices.Contains(given, "apiVersion") && slices.Contains(given, "kind")) {
		f.Errorf(f.Root, "yaml-missing-key", "", "begin it with apiVersion: policy.metalaw.dev/v1alpha1 and kind: Manifest",
			"the manifest does not say its apiVersion and kind")
	}
	if len(parts) == 0 && len(f.Found) == 0 {
		f.Errorf(f.Root, "manifest-empty", "", "list files:, or leave manifest.yaml out", "the manifest lists no file")
	}
	return parts, places, f.Found
}

func parsePart(f *yamlpos.File, n *yaml.Node) (Part, bool) {
	var p Part
	before := len(f.Found)
	for _, field := range f.Fields(n, "a file of the manifest", "name", "configMap", "digest") {
		text := f.Text(field.Value, field.Name)
		switch field.Name {
		case "name":
			if p.Name = text; !fileName.MatchString(text) || text == "." || text == ".." {
				f.Errorf(field.Value, codePartName, "", "write the name of a file, which is a key of its ConfigMap, without folders",
					"%q cannot be the name of a file", text)
			}
		case "configMap":
			if p.ConfigMap = text; !objectName.MatchString(text) || len(text) > maxObjectName {
				f.Errorf(field.Value, codePartName, p.Name, "use lower-case letters, digits, dashes and dots, as in metadata.name of the part",
					"%q cannot be the name of a ConfigMap", text)
			}
		case "digest":
			if p.Digest = text; !digestForm.MatchString(text) {
				f.Errorf(field.Value, "manifest-digest", p.Name, "write sha256: and 64 lower-case hexadecimal digits, as sha256sum prints them",
					"%q is not a digest", text)
			}
		}
	}
	if len(f.Found) == before && (p.Name == "" || p.ConfigMap == "" || p.Digest == "") {
		f.Errorf(n, "manifest-part", p.Name, "write name, configMap and digest", "the file lacks a name, a configMap or a digest")
	}
	return p, len(f.Found) == before
}
