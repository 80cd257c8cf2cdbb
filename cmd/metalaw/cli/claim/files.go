// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/metalaw/metalaw/api/v1alpha1"
	"github.com/metalaw/metalaw/cmd/internal/usage"
	"github.com/metalaw/metalaw/cmd/metalaw/cli/terminal"
	"github.com/metalaw/metalaw/engine/diag"
	"github.com/metalaw/metalaw/policies"
)

// read reads the files of the command line, in its order. What is wrong with single claims is kept with them.
func (r *attempt) read(ctx context.Context, in io.Reader) (documents, error) {
	if len(r.paths) == 0 {
		return documents{}, usage.Errorf("which claims? Name a file with -f, or - for standard input; see --help")
	}
	var all documents
	for i, path := range r.paths {
		if slices.Contains(r.paths[:i], path) {
			return documents{}, usage.Errorf("-f %s is given twice; name each file once", path)
		}
		docs, err := readFile(ctx, path, in)
		if err != nil {
			return documents{}, err
		}
		all.all, all.others = append(all.all, docs.all...), append(all.others, docs.others...)
	}
	return all, nil
}

// maxFile bounds what is read of one file.
const maxFile = 16 << 20

func readFile(ctx context.Context, path string, in io.Reader) (documents, error) {
	name := path
	switch path {
	case "":
		return documents{}, usage.Errorf("-f names no file; name one, or - for standard input; see --help")
	case "-":
		name = "<stdin>"
	}
	text, err := terminal.Read(ctx, path, in, maxFile)
	switch {
	case err != nil:
		return documents{}, fmt.Errorf("the file cannot be read: %w", err)
	case len(text) > maxFile:
		return documents{}, fmt.Errorf("%s has more than %d MiB, which is more than files of claims have; divide it", name, maxFile>>20)
	}
	docs, err := decode(name, text)
	if err == nil && len(docs.all) == 0 {
		err = fmt.Errorf("%s holds no ServerClaim", name)
	}
	return docs, err
}

// documents are what files hold.
type documents struct {
	all []document
	// others are the kinds of objects that are no claims.
	others []string
}

// distinct refuses two claims of one name, of which only one could ever be stored; namespace is that of claims which name none.
func (d *documents) distinct(namespace string) error {
	first := map[types.NamespacedName]*document{}
	for i := range d.all {
		doc := &d.all[i]
		if doc.claim.Name == "" { // the API server makes a name for each
			continue
		}
		name := types.NamespacedName{Namespace: cmp.Or(doc.claim.Namespace, namespace), Name: doc.claim.Name}
		if other, found := first[name]; found {
			return usage.Errorf("claim %s is there twice, at %s and at %s: give one of them another name, or take it out",
				name, other.place(), doc.place())
		}
		first[name] = doc
	}
	return nil
}

// namespaces are those of the claims, each once; namespace is that of claims which name none.
func (d *documents) namespaces(namespace string) []string {
	var all []string
	for _, doc := range d.all {
		all = append(all, cmp.Or(doc.claim.Namespace, namespace))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// document is a claim as it stands in a file.
type document struct {
	claim *v1alpha1.ServerClaim
	// file and line are where it begins; a claim in a List has the place of the List.
	file string
	line int
	// wrong is what is wrong with it, each with its place.
	wrong []string
}

func (d *document) place() string { return fmt.Sprintf("%s:%d", d.file, d.line) }

func (d *document) wrongf(format string, args ...any) {
	d.wrong = append(d.wrong, d.place()+": error: "+fmt.Sprintf(format, args...))
}

// separator is a line that ends a YAML document. Another may begin behind it, on the same line.
var separator = regexp.MustCompile(`(?m)^(---|\.{3})([ \t\r]|$)`)

// begins is the first line of a document that is neither empty nor a comment.
var begins = regexp.MustCompile(`(?m)^[ \t]*[^ \t\r\n#]`)

// decode finds the claims of a file. An error says that the rest of the file cannot be read.
func decode(name string, text []byte) (documents, error) {
	var docs documents
	line, from := 1, 0
	for _, end := range append(separator.FindAllIndex(text, -1), []int{len(text), len(text)}) {
		one := string(text[from:end[0]])
		if at := begins.FindStringIndex(one); at != nil {
			first := line + strings.Count(one[:at[0]], "\n")
			if err := docs.decode(document{file: name, line: first}, []byte(one), line); err != nil {
				return docs, err
			}
		}
		line, from = line+strings.Count(one, "\n"), end[1]
	}
	return docs, nil
}

// decode reads one YAML document, whose text begins in a line of the file. A key that is there twice is wrong, and what else is wrong is
// found as well.
func (d *documents) decode(doc document, text []byte, line int) error {
	// The library counts lines from the beginning of what it is given.
	padded := func() []byte { return append([]byte(strings.Repeat("\n", line-1)), text...) }
	object, err := yaml.YAMLToJSON(text)
	if err != nil {
		_, err = yaml.YAMLToJSON(padded())
		return fmt.Errorf("%s: error: %w", doc.file, err)
	}
	if _, err := yaml.YAMLToJSONStrict(text); err != nil {
		_, err = yaml.YAMLToJSONStrict(padded())
		doc.wrong = append(doc.wrong, fmt.Sprintf("%s: error: %s", doc.file, strings.Join(strings.Fields(err.Error()), " ")))
	}
	d.add(doc, object, false)
	return nil
}

// add takes in one object as JSON; certain says that it can be nothing but a claim.
func (d *documents) add(doc document, object []byte, certain bool) {
	var head struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	_ = json.Unmarshal(object, &head) // what has no such head is no claim, and is told so below
	switch {
	case string(object) == "null":
		return
	case head.Kind == "List" || head.Kind == "ServerClaimList":
		for _, item := range head.Items {
			d.add(document{file: doc.file, line: doc.line, wrong: doc.wrong}, item, head.Kind == "ServerClaimList")
		}
		return
	case head.Kind != "" && head.Kind != "ServerClaim" && !certain:
		d.others = append(d.others, head.Kind)
		return
	}
	doc.claim = &v1alpha1.ServerClaim{}
	if want := v1alpha1.GroupVersion.String(); !certain && (head.Kind == "" || head.APIVersion != want) {
		doc.wrongf("it is no ServerClaim of %s: write apiVersion: %s and kind: ServerClaim", want, want)
	}
	strict, err := kjson.UnmarshalStrict(object, doc.claim)
	if err != nil {
		doc.wrongf("%s", typeWords(err))
	}
	for _, one := range strict {
		doc.wrongf("%v", one)
	}
	if len(doc.wrong) == 0 {
		doc.checkMeaning()
	}
	d.all = append(d.all, doc)
}

// typeNames are the words of YAML for types of JSON and of Go.
var typeNames = map[string]string{"object": "mapping", "struct": "mapping", "map": "mapping", "array": "list", "slice": "list", "bool": "boolean",
	"int32": "number", "int64": "number"}

// typeWords say which value has another type than its field, and how to write it.
func typeWords(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	words := fmt.Sprintf("%s is a %s and has to be a %s", wrong.Field, cmp.Or(typeNames[wrong.Value], wrong.Value),
		cmp.Or(typeNames[wrong.Type.Kind().String()], wrong.Type.Kind().String()))
	switch {
	case wrong.Type.Kind() != reflect.String:
	case wrong.Value == "bool":
		words += ": write it in quotes; kubectl takes a bare On, Off, Yes or No for a boolean"
	case strings.HasPrefix(wrong.Value, "number"):
		words += ": write it in quotes"
	case strings.HasPrefix(wrong.Field, "metadata.annotations"):
		words += ": write it as text, with a | behind the key"
	}
	return words
}

// checkMeaning finds what has no meaning in what could be decoded: the selector and the placement.
func (d *document) checkMeaning() {
	if _, err := policies.ClaimSpecOf(d.claim); err != nil {
		d.wrongf("spec.serverSelector: %v", err)
	}
	_, found := policies.PlacementOf(d.claim)
	for _, one := range found {
		if one.Severity == diag.Error {
			one.File = d.place() + ": placement"
			d.wrong = append(d.wrong, one.String())
		}
	}
}
