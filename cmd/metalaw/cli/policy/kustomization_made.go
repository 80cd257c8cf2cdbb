// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// made is a ConfigMap that a kustomization makes of files, and where it says so.
type made struct {
	types.ConfigMapArgs
	// name is the ConfigMap's, but for the hash at its end where it gets one.
	name   string
	hashed bool
	// namespace is empty where it is that which kubectl happens to use.
	namespace           given
	labels, annotations map[string]given
	// own are the labels of the generator, of which others may stand in the place.
	own map[string]given
	// entries are its files, and added what else is put into it: literals by their keys, and files of such.
	entries, added []dataEntry

	nameAt, behaviorAt *yaml.Node
}

// given is a value and where it is written.
type given struct {
	value string
	at    *yaml.Node
}

// dataEntry is a file, or something else, that is put into a ConfigMap.
type dataEntry struct {
	key, path string
	at        *yaml.Node
}

// listing is how a generator lists a file: PATH, or KEY=PATH.
func listing(text string, at *yaml.Node) dataEntry {
	key, file, renamed := strings.Cut(text, "=")
	if !renamed {
		key, file = path.Base(text), text
	}
	return dataEntry{key, file, at}
}

// entry is the listing of a file in a ConfigMap; nil where there is none.
func (g *made) entry(file string) *dataEntry {
	if i := slices.IndexFunc(g.entries, func(e dataEntry) bool { return e.key == file }); i >= 0 {
		return &g.entries[i]
	}
	return nil
}

// made are the ConfigMaps that a kustomization makes, in its order.
func (k *kustomization) made() []made {
	all := make([]made, len(k.ConfigMapGenerator))
	for i, args := range k.ConfigMapGenerator {
		in := func(at ...any) *yaml.Node { return k.at(append([]any{"configMapGenerator", i}, at...)...) }
		g := made{ConfigMapArgs: args, name: k.NamePrefix + args.Name + k.NameSuffix, nameAt: in("name"), behaviorAt: in("behavior"),
			namespace: given{args.Namespace, in("namespace")}}
		if k.Namespace != "" {
			g.namespace = given{k.Namespace, k.at("namespace")}
		}
		global, own := options(k.GeneratorOptions), options(args.Options)
		g.hashed = !global.DisableNameSuffixHash && !own.DisableNameSuffixHash
		g.own, g.annotations = map[string]given{}, map[string]given{}
		k.give(g.own, global.Labels, "generatorOptions", "labels")
		k.give(g.own, own.Labels, "configMapGenerator", i, "options", "labels")
		k.give(g.annotations, global.Annotations, "generatorOptions", "annotations")
		k.give(g.annotations, own.Annotations, "configMapGenerator", i, "options", "annotations")
		k.give(g.annotations, k.CommonAnnotations, "commonAnnotations")
		g.labels = maps.Clone(g.own)
		for j, l := range k.Labels {
			k.give(g.labels, l.Pairs, "labels", j, "pairs")
		}
		k.give(g.labels, k.CommonLabels, "commonLabels") //nolint:staticcheck // It is deprecated, and kustomize heeds it.
		for j, text := range args.FileSources {
			g.entries = append(g.entries, listing(text, in("files", j)))
		}
		for j, text := range args.LiteralSources {
			key, _, _ := strings.Cut(text, "=")
			g.added = append(g.added, dataEntry{key: key, at: in("literals", j)})
		}
		for j := range args.EnvSources {
			at := in("envs", j)
			if at.Kind != yaml.ScalarNode {
				at = in("env") // kustomize's own reading puts it behind the others
			}
			g.added = append(g.added, dataEntry{at: at})
		}
		all[i] = g
	}
	return all
}

func options(o *types.GeneratorOptions) types.GeneratorOptions {
	if o == nil {
		return types.GeneratorOptions{}
	}
	return *o
}

// give writes values over those that are there.
func (k *kustomization) give(to map[string]given, values map[string]string, at ...any) {
	for key, value := range values {
		to[key] = given{value, k.at(append(slices.Clone(at), key)...)}
	}
}

// plain are values without their places.
func plain(values map[string]given) map[string]string {
	all := make(map[string]string, len(values))
	for key, g := range values {
		all[key] = g.value
	}
	return all
}
