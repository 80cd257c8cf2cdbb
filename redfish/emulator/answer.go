// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
)

// doc is a Redfish resource. It is a map and not a struct, because what makes differ in is which fields are there.
type doc = map[string]any

// answer is what a handler wants to send.
type answer struct {
	status int
	header http.Header
	// body is marshalled as JSON; nil: no body.
	body any
	// after runs when the answer has been sent.
	after func()
}

func ok(body doc) answer { return answer{status: http.StatusOK, body: body} }

func noContent() answer { return answer{status: http.StatusNoContent} }

// failure is a Redfish error as DSP0266 has it.
func failure(status int, messageID, message string) answer {
	return answer{status: status, body: errorBody("Base.1.13."+messageID, message)}
}

func errorBody(messageID, message string) doc {
	return doc{"error": doc{
		"code": messageID, "message": message,
		"@Message.ExtendedInfo": []any{doc{
			"@odata.type": "#Message.v1_1_1.Message", "MessageId": messageID, "Message": message,
			"Severity": "Warning", "Resolution": "None.",
		}},
	}}
}

// success answers a write: some makes send a message, some nothing.
func success(status int) answer {
	if status == http.StatusNoContent {
		return noContent()
	}
	return answer{status: status, body: errorBody("Base.1.13.Success", "The request completed successfully.")}
}

func notFound(path string) answer {
	return failure(http.StatusNotFound, "ResourceMissingAtURI", "The resource at the URI "+path+" was not found.")
}

func badProperty(name, why string) answer {
	return failure(http.StatusBadRequest, "PropertyValueNotInList", fmt.Sprintf("The property %s is not acceptable: %s.", name, why))
}

func unknownProperty(name string) answer {
	return failure(http.StatusBadRequest, "PropertyUnknown", "The property "+name+" is not known or cannot be changed.")
}

// etag is the entity tag of a resource in the state that body shows.
func (p *Profile) etag(body doc) string {
	raw, err := json.Marshal(body)
	if err != nil {
		return ""
	}
	h := fnv.New64a()
	// A hash cannot fail to be written to.
	_, _ = h.Write(raw)
	tag := strconv.Quote(strconv.FormatUint(h.Sum64(), 16))
	if p.WeakETags {
		tag = "W/" + tag
	}
	return tag
}

// precondition judges If-Match for a change of the resource that body shows; nil: go on.
func (p *Profile) precondition(r *http.Request, body doc) *answer {
	want := r.Header.Get("If-Match")
	switch {
	case p.ETags == ETagsNone || want == "*":
		return nil
	case want == "":
		if p.ETags == ETagsRequired {
			a := failure(http.StatusPreconditionRequired, "PreconditionRequired",
				"A precondition header (If-Match) is required to change this resource.")
			return &a
		}
		return nil
	}
	for _, tag := range strings.Split(want, ",") {
		if strings.TrimSpace(tag) == p.etag(body) {
			return nil
		}
	}
	a := failure(http.StatusPreconditionFailed, "PreconditionFailed", "The entity tag supplied did not match the resource.")
	return &a
}

// link is a reference to a resource, spelled as the make does. path has no trailing slash.
func (b *bmc) link(path string) doc { return doc{"@odata.id": b.uri(path)} }

func (b *bmc) uri(path string) string {
	if b.profile.TrailingSlash && !strings.HasSuffix(path, "/") {
		return path + "/"
	}
	return path
}

func (b *bmc) links(paths []string) []any {
	list := make([]any, 0, len(paths))
	for _, p := range paths {
		list = append(list, b.link(p))
	}
	return list
}

// resource begins a resource. kind is like "ComputerSystem.v1_16_0".
func (b *bmc) resource(path, kind, id, name string) doc {
	schema, _, _ := strings.Cut(kind, ".")
	return doc{
		"@odata.id": b.uri(path), "@odata.type": "#" + kind + "." + schema, "Id": id, "Name": name,
	}
}

// collection lists members.
func (b *bmc) collection(path, schema, name string, members []string) doc {
	return doc{
		"@odata.id": b.uri(path), "@odata.type": "#" + schema + "." + schema, "Name": name,
		"Members": b.links(members), "Members@odata.count": len(members),
	}
}
