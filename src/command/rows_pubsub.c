/* Rows of the command table: publish and subscribe. See command/rows.h.
 *
 * Names of shard channels stand where keys stand, because their slot says where they live; they are
 * no keys ("not_key"), and nothing is counted or looked up under them. */
#include "command/rows.h"

/* A row: where it runs, what it takes, its flags, its words. */
/* clang-format off */

#define LISTEN_FLAGS (HS_CMD_PUBSUB | HS_CMD_NOSCRIPT | HS_CMD_LOADING | HS_CMD_STALE)
#define PUBLISH_FLAGS (HS_CMD_PUBSUB | HS_CMD_LOADING | HS_CMD_STALE | HS_CMD_FAST)
#define LOOK_FLAGS (HS_CMD_PUBSUB | HS_CMD_LOADING | HS_CMD_STALE)

ROW(PSUBSCRIBE,
	.name = "psubscribe", .place = HS_PLACE_CORE,
	.arity = -2, .flags = LISTEN_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "2.0.0", .complexity = "O(N), N the number of patterns",
	.arguments = "pattern ...",
	.summary = "Listens to the channels that match a pattern");

ROW(PUBLISH,
	.name = "publish", .place = HS_PLACE_ANY,
	.arity = 3, .flags = PUBLISH_FLAGS, .categories = "@pubsub @fast",
	.group = "pubsub", .since = "2.0.0",
	.complexity = "O(N+M), N the listeners of the channel, M the patterns anybody listens to",
	.arguments = "channel message",
	.summary = "Sends a message to a channel and answers how often it was heard");

ROW(PUBSUB,
	.name = "pubsub", .place = HS_PLACE_PARENT,
	.arity = -2,
	.categories = "@slow",
	.group = "pubsub", .since = "2.8.0", .complexity = "That of the subcommand",
	.summary = "Looks at channels and who listens");

ROW(PUBSUB_CHANNELS,
	.name = "pubsub|channels", .parent = HS_CMD_ID_PUBSUB, .place = HS_PLACE_WORKERS,
	.arity = -2, .flags = LOOK_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "2.8.0", .complexity = "O(N), N the number of channels",
	.arguments = "[pattern]",
	.summary = "Lists the channels that somebody listens to");

ROW(PUBSUB_HELP,
	.name = "pubsub|help", .parent = HS_CMD_ID_PUBSUB, .place = HS_PLACE_CORE,
	.arity = 2,
	.flags = HS_CMD_LOADING | HS_CMD_STALE, .categories = "@slow",
	.group = "pubsub", .since = "6.2.0", .complexity = "O(1)",
	.summary = "Shows this text");

ROW(PUBSUB_NUMPAT,
	.name = "pubsub|numpat", .parent = HS_CMD_ID_PUBSUB, .place = HS_PLACE_WORKERS,
	.arity = 2, .flags = LOOK_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "2.8.0", .complexity = "O(N), N the number of patterns",
	.summary = "Counts the patterns that somebody listens to, each once");

ROW(PUBSUB_NUMSUB,
	.name = "pubsub|numsub", .parent = HS_CMD_ID_PUBSUB, .place = HS_PLACE_WORKERS,
	.arity = -2, .flags = LOOK_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "2.8.0", .complexity = "O(N), N the number of channels asked for",
	.arguments = "[channel ...]",
	.summary = "Counts the listeners of channels, patterns aside");

ROW(PUBSUB_SHARDCHANNELS,
	.name = "pubsub|shardchannels", .parent = HS_CMD_ID_PUBSUB, .place = HS_PLACE_WORKERS,
	.arity = -2, .flags = LOOK_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "7.0.0", .complexity = "O(N), N the number of shard channels",
	.arguments = "[pattern]",
	.summary = "Lists the shard channels that somebody listens to");

ROW(PUBSUB_SHARDNUMSUB,
	.name = "pubsub|shardnumsub", .parent = HS_CMD_ID_PUBSUB, .place = HS_PLACE_WORKERS,
	.arity = -2, .flags = LOOK_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "7.0.0",
	.complexity = "O(N), N the number of shard channels asked for",
	.arguments = "[shardchannel ...]",
	.summary = "Counts the listeners of shard channels");

ROW(PUNSUBSCRIBE,
	.name = "punsubscribe", .place = HS_PLACE_CORE,
	.arity = -1, .flags = LISTEN_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "2.0.0", .complexity = "O(N), N the number of patterns",
	.arguments = "[pattern ...]",
	.summary = "Listens to patterns no longer, or to none at all");

ROW(SPUBLISH,
	.name = "spublish", .place = HS_PLACE_PARTITION,
	.arity = 3, KEYS(1, 1, 1, "not_key"),
	.flags = PUBLISH_FLAGS, .categories = "@pubsub @fast",
	.group = "pubsub", .since = "7.0.0", .complexity = "O(N), N the listeners of the channel",
	.arguments = "shardchannel message",
	.summary = "Sends a message to a shard channel and answers how often it was heard");

ROW(SSUBSCRIBE,
	.name = "ssubscribe", .place = HS_PLACE_CORE,
	.arity = -2, KEYS(1, -1, 1, "not_key"),
	.flags = LISTEN_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "7.0.0", .complexity = "O(N), N the number of shard channels",
	.arguments = "shardchannel ...",
	.summary = "Listens to shard channels");

ROW(SUBSCRIBE,
	.name = "subscribe", .place = HS_PLACE_CORE,
	.arity = -2, .flags = LISTEN_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "2.0.0", .complexity = "O(N), N the number of channels",
	.arguments = "channel ...",
	.summary = "Listens to channels");

ROW(SUNSUBSCRIBE,
	.name = "sunsubscribe", .place = HS_PLACE_CORE,
	.arity = -1, KEYS(1, -1, 1, "not_key"),
	.flags = LISTEN_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "7.0.0", .complexity = "O(N), N the number of shard channels",
	.arguments = "[shardchannel ...]",
	.summary = "Listens to shard channels no longer, or to none at all");

ROW(UNSUBSCRIBE,
	.name = "unsubscribe", .place = HS_PLACE_CORE,
	.arity = -1, .flags = LISTEN_FLAGS, .categories = "@pubsub @slow",
	.group = "pubsub", .since = "2.0.0", .complexity = "O(N), N the number of channels",
	.arguments = "[channel ...]",
	.summary = "Listens to channels no longer, or to none at all");
