package api

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"ottla/controller/metadata"
	"ottla/protocol"
	"ottla/protocol/schema"
)

// describeUserScramCredentials tells which SCRAM credentials the metadata holds
// (KIP-554), though nothing here is logged in by them yet.
func describeUserScramCredentials(c *call, req *kmsg.DescribeUserSCRAMCredentialsRequest) {
	if !c.mayCluster(kmsg.ACLOperationDescribe) {
		c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
		return
	}
	held := map[string][]kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo{}
	for credential := range c.Image().ScramCredentials() {
		info := kmsg.NewDescribeUserSCRAMCredentialsResponseResultCredentialInfo()
		info.Mechanism, info.Iterations = credential.Mechanism, credential.Iterations
		held[credential.Name] = append(held[credential.Name], info)
	}
	times := map[string]int{}
	for _, user := range req.Users {
		times[user.Name]++
	}
	if len(req.Users) == 0 {
		for user := range held {
			times[user] = 1
		}
	}
	resp := kmsg.NewPtrDescribeUserSCRAMCredentialsResponse()
	resp.ErrorMessage = kmsg.StringPtr("")
	for user, n := range times {
		result := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		switch result.User = user; {
		case n > 1:
			result.ErrorCode = int16(protocol.DuplicateResource)
			result.ErrorMessage = kmsg.StringPtr("Cannot describe SCRAM credentials for the same user twice in a single request: " + user)
		case held[user] == nil:
			result.ErrorCode = int16(protocol.ResourceNotFound)
			result.ErrorMessage = kmsg.StringPtr("Attempt to describe a user credential that does not exist: " + user)
		default:
			result.CredentialInfos = held[user]
		}
		resp.Results = append(resp.Results, result)
	}
	slices.SortFunc(resp.Results, func(a, b kmsg.DescribeUserSCRAMCredentialsResponseResult) int { return strings.Compare(a.User, b.User) })
	c.reply(resp)
}

// How a component of a DescribeClientQuotas matches.
const (
	matchExact     = 0
	matchDefault   = 1
	matchSpecified = 2 // any name, or the default
)

// describeClientQuotas tells which quotas the metadata holds (KIP-546), though
// nothing here is throttled by them yet.
func describeClientQuotas(c *call, req *kmsg.DescribeClientQuotasRequest) {
	if !c.mayCluster(kmsg.ACLOperationDescribeConfigs) {
		c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
		return
	}
	if err := checkQuotaFilter(req.Components); err != nil {
		c.reply(errorResponse(req, err))
		return
	}
	resp := kmsg.NewPtrDescribeClientQuotasResponse()
	resp.ErrorMessage, resp.Entries = kmsg.StringPtr(""), quotaEntries(c.Image(), req)
	c.reply(resp)
}

func checkQuotaFilter(components []kmsg.DescribeClientQuotasRequestComponent) error {
	seen := map[string]bool{}
	refuse := func(format string, args ...any) error {
		return protocol.Errorf(protocol.InvalidRequest, format, args...)
	}
	for _, part := range components {
		switch kind := part.EntityType; {
		case kind == "":
			return refuse("Invalid empty entity type.")
		case seen[kind]:
			return refuse("Entity type %s cannot appear more than once in the filter.", kind)
		case kind != "user" && kind != "client-id" && kind != "ip":
			return protocol.Errorf(protocol.UnsupportedVersion, "Unsupported entity type %s", kind)
		}
		seen[part.EntityType] = true
		switch part.MatchType {
		case matchExact:
			if part.Match == nil {
				return refuse("Request specified MATCH_TYPE_EXACT, but set match string to null.")
			}
		case matchDefault:
			if part.Match != nil {
				return refuse("Request specified MATCH_TYPE_DEFAULT, but also specified a match string.")
			}
		case matchSpecified:
			if part.Match != nil {
				return refuse("Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.")
			}
		default:
			return refuse("Unknown match type %d", part.MatchType)
		}
	}
	if seen["ip"] && (seen["user"] || seen["client-id"]) {
		return refuse("Invalid entity filter component combination. IP filter component should not be used with user or clientId filter component.")
	}
	return nil
}

func quotaEntries(image *metadata.Image, req *kmsg.DescribeClientQuotasRequest) []kmsg.DescribeClientQuotasResponseEntry {
	entries := []kmsg.DescribeClientQuotasResponseEntry{}
	var last []schema.ClientQuotaEntity
	for quota := range image.ClientQuotas() {
		if !quotaMatches(quota.Entity, req) {
			continue
		}
		if last == nil || !slices.EqualFunc(last, quota.Entity, equalEntities) {
			entry := kmsg.NewDescribeClientQuotasResponseEntry()
			for _, part := range quota.Entity {
				entry.Entity = append(entry.Entity, kmsg.DescribeClientQuotasResponseEntryEntity{Type: part.EntityType, Name: part.EntityName})
			}
			entries, last = append(entries, entry), quota.Entity
		}
		entry := &entries[len(entries)-1]
		entry.Values = append(entry.Values, kmsg.DescribeClientQuotasResponseEntryValue{Key: quota.Key, Value: quota.Value})
	}
	return entries
}

func equalEntities(a, b schema.ClientQuotaEntity) bool {
	return a.EntityType == b.EntityType && (a.EntityName == nil) == (b.EntityName == nil) && deref(a.EntityName) == deref(b.EntityName)
}

func quotaMatches(entity []schema.ClientQuotaEntity, req *kmsg.DescribeClientQuotasRequest) bool {
	if req.Strict && len(entity) != len(req.Components) {
		return false
	}
	for _, part := range req.Components {
		at := slices.IndexFunc(entity, func(e schema.ClientQuotaEntity) bool { return e.EntityType == part.EntityType })
		switch {
		case at < 0:
			return false
		case part.MatchType == matchSpecified:
		case part.MatchType == matchDefault && entity[at].EntityName != nil:
			return false
		case part.MatchType == matchExact && (entity[at].EntityName == nil || *entity[at].EntityName != *part.Match):
			return false
		}
	}
	return true
}

// describeACLs tells that there is no authorizer, as Apache Kafka without one does,
// whatever rules the metadata holds for the day that there is one. A filter that
// makes no sense ends the connection.
func describeACLs(c *call, req *kmsg.DescribeACLsRequest) {
	// Of what it does not know Apache Kafka minds the number 0 alone (DescribeAclsRequest).
	if req.ResourceType == 0 || req.ResourcePatternType == 0 || req.Operation == 0 || req.PermissionType == 0 {
		c.close(protocol.Errorf(protocol.InvalidRequest, "the filter has unknown elements"))
		return
	}
	if !c.mayCluster(kmsg.ACLOperationDescribe) {
		c.reply(errorResponse(req, protocol.ClusterAuthorizationFailed.Err()))
		return
	}
	c.reply(errorResponse(req, protocol.Errorf(protocol.SecurityDisabled, "No Authorizer is configured on the broker")))
}
