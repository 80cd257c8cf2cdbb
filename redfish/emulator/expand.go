// SPDX-License-Identifier: Apache-2.0

package emulator

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

var expandForm = regexp.MustCompile(`^([.*~])(?:\(\$levels=(\d{1,3})\))?$`)

// expand carries out the query $expand on body. It returns an answer where the BMC refuses it.
func (x *exchange) expand(body doc) *answer {
	query := x.req.URL.Query()
	if !query.Has("$expand") {
		return nil
	}
	offer := x.bmc.profile.Expand
	if !offer.Supported {
		if offer.UnsupportedStatus == 0 {
			return nil
		}
		a := failure(offer.UnsupportedStatus, "QueryNotSupported", "Querying is not supported by the implementation.")
		return &a
	}
	form := expandForm.FindStringSubmatch(query.Get("$expand"))
	levels := 1
	if len(form) == 3 && form[2] != "" {
		// The form allows three digits, which always are a number.
		levels, _ = strconv.Atoi(form[2])
	}
	if len(form) != 3 || form[1] != "." && !offer.ExpandAll || form[2] != "" && !offer.Levels ||
		levels < 1 || levels > max(1, offer.MaxLevels) {
		a := failure(http.StatusBadRequest, "QueryParameterValueFormatError",
			fmt.Sprintf("The value %q of the query $expand is not supported.", query.Get("$expand")))
		return &a
	}
	x.expandFields(body, levels, form[1] != ".")
	return nil
}

// expandFields replaces the links in an object by what they lead to.
func (x *exchange) expandFields(body doc, levels int, linksToo bool) {
	for k, v := range body {
		switch {
		case k == "Links" && !linksToo, strings.HasPrefix(k, "@"), k == "Actions":
		default:
			body[k] = x.expandValue(v, levels, linksToo)
		}
	}
}

func (x *exchange) expandValue(v any, levels int, linksToo bool) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = x.expandValue(v[i], levels, linksToo)
		}
	case doc:
		uri, isText := v["@odata.id"].(string)
		if !isText || len(v) != 1 {
			x.expandFields(v, levels, linksToo)
			return v
		}
		full := x.lookup(uri)
		if full == nil {
			return v
		}
		if levels > 1 {
			x.expandFields(full, levels-1, linksToo)
		}
		return full
	}
	return v
}
