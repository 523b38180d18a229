// Package assign decides who gets which partitions of a consumer group whose
// members leave that to the coordinator (KIP-848): the assignors "uniform" and
// "range" of Apache Kafka 4.4.0, and the regular expressions by which members
// subscribe.
//
// An Assignor is a pure function of a Group: the members, what each subscribes
// to and what it has now, and how many partitions each topic has. Equal input
// gives equal output; nothing depends on the order of a map. There is no lock,
// clock, I/O or state. The package knows neither epochs nor how a member is
// brought from the partitions that it has to those that it is to have: that is
// controller/group, its only caller.
//
// # Invariants
//
//   - Every member of the group has an entry in the result, be it empty.
//   - Every partition of a topic that somebody subscribes to has one owner, who
//     subscribes to it; no partition of another topic has any.
//   - Lists of partitions are sorted, and there is none that is empty.
//   - The result shares no memory with the input.
//   - uniform: nobody has two partitions more than somebody who could take one of
//     them; where all subscribe to the same topics, a partition moves only to keep
//     that, or because its owner is gone. (Where subscriptions overlap otherwise
//     the rounds that level them are bounded, as in Apache Kafka.)
//   - range: what members own does not matter.
//
// testdata holds what Apache Kafka's assignors said, partition for partition.
//
// Start reading at assign.go, then layout.go, even.go, uneven.go (with sides.go),
// range.go; regex.go stands by itself.
package assign
