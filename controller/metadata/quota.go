package metadata

import (
	"slices"
	"strings"

	"ottla/protocol/schema"
)

// quotaKey orders and identifies quotas: by the parts of their entity, sorted
// by type, then by key. NUL bytes within names are escaped so that no two
// entities share a key.
func quotaKey(r *schema.ClientQuotaRecord) string {
	entity := slices.Clone(r.Entity)
	slices.SortFunc(entity, func(a, b schema.ClientQuotaEntity) int {
		return strings.Compare(a.EntityType, b.EntityType)
	})
	var key strings.Builder
	for _, part := range entity {
		writeKeyPart(&key, part.EntityType)
		if part.EntityName == nil { // the default of all of this type
			key.WriteByte(1)
			continue
		}
		key.WriteByte(2)
		writeKeyPart(&key, *part.EntityName)
	}
	key.WriteByte(0)
	writeKeyPart(&key, r.Key)
	return key.String()
}

func writeKeyPart(key *strings.Builder, text string) {
	key.WriteString(strings.ReplaceAll(text, "\x00", "\x00\x01"))
	key.WriteString("\x00\x00")
}
