// The table of settings. The default of a setting is the value that its field has in `Config{}`.
#include <algorithm>
#include <array>

#include "config/read_config.hpp"
#include "config/setting.hpp"
#include "config/setting_value.hpp"

namespace resourced::config {
namespace {

constexpr double max_journal = 1e9;
constexpr double max_size = 4294967295;
constexpr double max_hwm = 1e6;
// Maximum heartbeat timeout that libzmq can announce to a peer: ZMQ_HEARTBEAT_TTL has tenths of seconds in 16
// bits.
constexpr double max_heartbeat = 6553.5;
// Bounds of the message size. A message carries an R: a smaller limit would refuse inventories, a larger one
// would let one peer fill the memory.
constexpr double min_message_size = 64 << 10;
constexpr double max_message_size = 4.0 * (1 << 30);
constexpr double min_ledger = 64 << 10;
constexpr double max_ledger = 16.0 * (1 << 30);
constexpr Bounds keep_bounds{.least = 0, .most = 3600};
constexpr double max_requests = 1e6;
constexpr double max_requests_per_second = 1e9;
constexpr double max_connections = 1e6;
// Maximum handshake timeout: libzmq takes an int of milliseconds, and an hour is far more than a handshake
// needs.
constexpr double max_handshake = 3600;
constexpr double max_coalesce = 60;
constexpr double max_flaps = 1000;
// Bounds of the lease: etcd answers within tenths of seconds; a minute without a leader is longer than a
// start.
constexpr Bounds lease_bounds{.least = 2, .most = 60};
constexpr Bounds grace_bounds{.least = 0, .most = 3600};
constexpr double min_snapshot_events = 10;
constexpr double max_snapshot_events = 1e6;
constexpr Bounds more_than_zero{.least = 0, .excludes_least = true};

constexpr auto sections_table = std::to_array<Section>({
    {"resource", "The inventory: hosts and their resources, in the format of Flux's configuration.", ""},
    {"resource.config",
     "Hosts with their cores, gpus and properties. Ranks are numbered from 0 in the order in which hosts are "
     "first named. A host may be in several entries: their resources and properties add up. Only properties "
     "change live.",
     R"([[resource.config]]
hosts = "node[0-7]"
cores = "0-3"

[[resource.config]]
hosts = "node[0-5]"
properties = ["batch"]

[[resource.config]]
hosts = "node[6-7]"
gpus = "0-1"
properties = ["gpu", "debug"]
)"},
    {"resource.verify",
     "How nodes are compared with the inventory: strict (any mismatch fails), allow-extra (only missing "
     "resources fail), allow-missing (only extra ones fail) or ignore. The values shown are the defaults if "
     "this table is missing. verify = true means strict for all, verify = false means ignore for all.",
     R"(#[resource.verify]
#default = "allow-extra"
#core = "allow-extra"
#gpu = "ignore"
#hostname = "strict"
)"},
    {"bus", "Endpoints of the daemon, and limits and timeouts of its connections.", ""},
    {"store", "The store: drained targets, other changes made at run time, and the event log.", ""},
    {"log", "The daemon's log.", ""},
    {"acquire", "How schedulers acquire resources.", ""},
    {"acquire.partition",
     "Parts of the inventory, each for its own scheduler. A partition has a name, and either targets or a "
     "constraint. Partitions must not overlap. A scheduler that names no partition gets all other targets.",
     R"(#[[acquire.partition]]
#name = "batch"
#targets = "node[0-5]"

#[[acquire.partition]]
#name = "gpu"
#constraint = "gpu"
)"},
    {"access",
     "Roles of clients. A client may have several: owner (everything), admin (drain, undrain, properties, "
     "expiration, shrink, reload, and reading), user (reading), scheduler (acquire, and reading), agent "
     "(reports a node). The daemon's own user and root are always owners. A reload changes the roles of "
     "connected clients at once.",
     ""},
    {"access.rule",
     "Roles of users and groups of this machine, by name or number. Members of groups are looked up at the "
     "start, and again every 15 s.",
     R"(#[[access.rule]]
#users = [1001]
#groups = ["adm"]
#roles = ["admin", "scheduler"]
)"},
    {"access.key", "Roles of clients with CURVE keys, for tcp:// endpoints.",
     R"(#[[access.key]]
#name = "login1"
#public-key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#roles = ["user"]
#[[access.key]]
#name = "rack7"
#public-key = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#roles = ["agent"]
#hosts = "node[0-7]"
)"},
    {"allocations", "The ledger of allocations (docs/allocations.md).", ""},
    {"limits", "Limits for each client.", ""},
    {"monitor", "How the daemon detects whether nodes are alive.", ""},
    {"flux",
     "A Flux instance whose resource module attaches to this daemon (docs/flux.md). The inventory and the "
     "liveness of nodes are then those of the instance: [[resource.config]], path, exclude, partitions, "
     "parent-uri and monitor.mode = \"agents\" cannot be used with it.",
     ""},
    {"http",
     "The HTTP server: the web view, metrics and a read-only API (docs/monitoring.md). It listens only if "
     "this table has addresses. Without tokens every user of this machine may read through loopback, unless "
     "access.local is []; on a Unix socket [access] applies.",
     ""},
    {"cluster",
     "Several daemons with one log in etcd: one leads and serves, the others take over (docs/cluster.md). "
     "Without etcd there is no cluster. All need the same inventory, partitions and access rules.",
     ""},
    {"queues.NAME",
     "Queues of Flux (RFC 33). The daemon uses only hosts; the other keys are for Flux's job manager.",
     R"(#[queues.batch]
#hosts = "node[0-5]"
)"},
});

using enum Change;
using enum Shown;

constexpr Value part(Type type) { return {.type = type, .bounds = std::nullopt}; }

constexpr auto settings_table = std::to_array<Setting>({
    {"resource", "path", inventory, if_written, path<&Config::resource, &Resource::path>(),
     "An R file (RFC 20) with the inventory. Not used if there is [[resource.config]]. With parent-uri, it "
     "is the R that the enclosing instance assigned to this one. Only properties change live.",
     R"("R.json")"},
    {"resource", "config", inventory, if_written,
     stored<&Config::resource, &Resource::entries, read_entries>(Type::entries), "", ""},
    {"resource", "scheduling", inventory, if_written, path<&Config::resource, &Resource::scheduling>(),
     "A JSON file whose content becomes the R's scheduling key, for schedulers that need a resource graph.",
     R"("scheduling.json")"},
    {"resource", "exclude", live, if_written, text<&Config::resource, &Resource::exclude>(),
     R"(Targets that no scheduler gets, as ranks ("0,6-7") or hosts.)", ""},
    {"resource", "norestrict", restart, if_written, flag<&Config::resource, &Resource::norestrict>(),
     "Agents report all processors of their node, including those that the agents themselves may not use.",
     ""},
    {"resource", "noverify", restart, if_written, flag<&Config::resource, &Resource::noverify>(),
     "Do not compare nodes with the inventory. Overrides [resource.verify].", ""},
    {"resource", "verify", restart, if_written,
     stored<&Config::resource, &Resource::verify, read_verify>(Type::table), "", ""},
    {"resource", "no-update-watch", parent, if_written, flag<&Config::resource, &Resource::no_update_watch>(),
     "Do not follow changes of the resource set of an enclosing instance (parent-uri).", ""},
    {"resource", "rediscover", restart, if_written, flag<&Config::resource, &Resource::rediscover>(),
     "Discover the inventory again at each start, instead of using the recorded one.", ""},
    {"resource", "journal-max", live, if_written,
     integer<&Config::resource, &Resource::journal_max>(1, max_journal),
     "How many past events the journal keeps in memory. EOVERFLOW ends a consumer that reads nothing while "
     "more events than that happen; it can ask again for the events it missed. A consumer that the daemon "
     "has delayed continues from the store.",
     ""},
    {"resource", "history", live, if_written, seconds<&Config::store, &Store::history>(),
     "The same as history in [store], under the name that Flux's configuration uses.", ""},
    {"resource", "parent-uri", parent, if_written, filled_text<&Config::resource, &Resource::parent_uri>(),
     "The URI of the enclosing instance (the parent), which assigned this instance its resources. They are "
     "in path or, without it, in $RESOURCED_PARENT_R, which is an R or the path of an R file. Ranks are "
     "numbered from 0, in the order of the parent's ranks or of rerank. The daemon follows changes of these "
     "hosts in the parent; see docs/instances.md. Adding or removing a parent requires a restart.",
     R"("local:///run/resourced/local")"},
    {"resource", "parent-key-file", parent, if_written, path<&Config::resource, &Resource::parent_key_file>(),
     R"(For a parent-uri with tcp://: a file with this daemon's keys for the parent, made by )"
     R"("resourcectl keygen --server-key". By default $RESOURCED_KEY, if that is set.)",
     R"("parent.key")"},
    {"resource", "parent-settle", parent, if_written, seconds<&Config::resource, &Resource::parent_settle>(),
     "After a lost connection to the parent: how long to wait for the parent to report its nodes online "
     "again before they are down here.",
     ""},
    {"resource", "rerank", restart, if_written,
     stored<&Config::resource, &Resource::rerank, read_rerank>(Type::text),
     "With parent-uri: the hosts in the order of the ranks here.", R"("node[7,0-6]")"},
    {"resource", "size", restart, if_written,
     integer<&Config::resource, &Resource::size, std::uint32_t>(1, max_size),
     "How many nodes to wait for when node agents report the inventory (no path, no [[resource.config]]).",
     "8"},
    {"resource", "discovery-timeout", restart, if_written,
     seconds<&Config::resource, &Resource::discovery_timeout>(),
     "How long to wait for size nodes. After that the inventory has the nodes that have reported.", ""},
    {"resource", "shrink-lost", restart, if_written, flag<&Config::resource, &Resource::shrink_lost>(),
     "Remove nodes from the inventory that are offline for longer than [monitor] lost-after. They cannot "
     "come back. A network failure of that length removes all nodes behind it.",
     ""},

    {"resource.config", "hosts", inventory, if_written, part(Type::text), "A hostlist (RFC 29).", ""},
    {"resource.config", "cores", inventory, if_written, part(Type::text), "The cores of each host (RFC 22).",
     ""},
    {"resource.config", "gpus", inventory, if_written, part(Type::text), "The gpus of each host (RFC 22).",
     ""},
    {"resource.config", "properties", inventory, if_written, part(Type::list),
     "Names (RFC 20) for use in constraints.", ""},

    {"resource.verify", "default", restart, if_written, part(Type::text),
     "The mode for core, gpu and hostname where this table does not set them. Without it they are strict.",
     ""},
    {"resource.verify", "core", restart, if_written, part(Type::text), "The mode for cores.", ""},
    {"resource.verify", "gpu", restart, if_written, part(Type::text), "The mode for gpus.", ""},
    {"resource.verify", "hostname", restart, if_written, part(Type::text), "The mode for host names.", ""},

    {"bus", "listen", restart, always,
     stored<&Config::bus, &Bus::listen, read_listen, tell<std::vector<std::string>>>(Type::list),
     "Endpoints: any number of ipc://PATH, tcp://HOST:PORT (ZeroMQ) and local://PATH (Unix socket, for the "
     R"(Flux command line). tcp://*:PORT is all addresses, of IPv4 and IPv6. By default the sockets "bus" and "local" in $RUNTIME_DIRECTORY or $XDG_RUNTIME_DIR/resourced.)",
     R"(["ipc:///run/resourced/bus", "local:///run/resourced/local"])"},
    {"bus", "send-hwm", restart, always, integer<&Config::bus, &Bus::send_hwm>(1, max_hwm),
     "How many messages may wait to be sent to a peer. A peer that reads more slowly gets merged updates.",
     ""},
    {"bus", "receive-hwm", restart, always, integer<&Config::bus, &Bus::receive_hwm>(1, max_hwm),
     "How many messages from a peer may wait to be handled.", ""},
    {"bus", "heartbeat-interval", restart, always,
     milliseconds<&Config::bus, &Bus::heartbeat_interval>(max_heartbeat),
     "How often a silent peer on TCP is probed, rounded up to whole seconds. Peers on this machine need no "
     "probes. (On the connection to parent-uri it is the interval of ZMTP heartbeats.)",
     ""},
    {"bus", "heartbeat-timeout", restart, always,
     milliseconds<&Config::bus, &Bus::heartbeat_timeout>(max_heartbeat),
     "How long a silent peer may leave probes unanswered before it is disconnected, rounded up to whole "
     "seconds. Not less than heartbeat-interval.",
     ""},
    {"bus", "max-message-size", restart, always,
     integer<&Config::bus, &Bus::max_message_size>(min_message_size, max_message_size),
     "The largest message that is accepted, in bytes. At most 2 MiB over TCP, and on local sockets for all "
     "users except the owner.",
     ""},
    {"bus", "curve-key-file", restart, if_written, path<&Config::bus, &Bus::curve_key_file>(),
     R"(A file with the CURVE key pair that encrypts tcp:// connections, made by "resourcectl keygen". Without )"
     "it, the daemon listens on loopback addresses only, unless insecure is true.",
     R"("curve.key")"},
    {"bus", "insecure", restart, if_written, flag<&Config::bus, &Bus::insecure>(),
     "Allow tcp:// endpoints without CURVE on all addresses: any host on the network can connect, "
     "unencrypted.",
     ""},
    {"bus", "socket-mode", restart, if_written,
     stored<&Config::bus, &Bus::socket_mode, read_socket_mode, tell_socket_mode>(Type::text),
     "The file mode of local sockets, which decides who may connect. [access] decides what they may do.", ""},
    {"bus", "socket-group", restart, if_written,
     stored<&Config::bus, &Bus::socket_group, read_socket_group>(Type::text),
     "A group that may connect to ZeroMQ sockets (ipc), besides root and the daemon's own user. socket-mode "
     "does not apply to them: libzmq does not bound the memory of a message.",
     R"("adm")"},

    {"store", "directory", restart, if_written, path<&Config::store, &Store::directory>(),
     "The state directory. By default $STATE_DIRECTORY or $XDG_STATE_HOME/resourced.",
     R"("/var/lib/resourced")"},
    {"store", "history", live, always, seconds<&Config::store, &Store::history>(),
     "How long past events are kept.", ""},

    {"log", "level", live, always, named<&Config::log, &Log::level, parse_log_level>(),
     "The least severe level that is logged: trace, debug, info, warning, error, critical or off.", ""},

    {"acquire", "keep", live, always, seconds<&Config::acquire, &Acquire::keep>(keep_bounds),
     "For how long the resources of a scheduler that has lost its connection are kept for it, if it acquired "
     "them with a token (docs/protocol.md); at most an hour. 0: they are free at once (RFC 28).",
     ""},
    {"acquire", "partition", restart, if_written,
     stored<&Config::acquire, &Acquire::partitions, read_partitions>(Type::entries), "", ""},
    {"acquire.partition", "name", restart, if_written, part(Type::text), "Unique among partitions.", ""},
    {"acquire.partition", "targets", restart, if_written, part(Type::text), "Ranks or hosts.", ""},
    {"acquire.partition", "constraint", restart, if_written, part(Type::text), "A query (RFC 35).", ""},

    {"access", "local", live, if_written,
     stored<&Config::access, &Access::local, read_roles, tell_roles>(Type::list),
     "Roles of the users of this machine that are in no rule.", ""},
    {"access", "anonymous", live, if_written,
     stored<&Config::access, &Access::anonymous, read_roles, tell_roles>(Type::list),
     "Roles of clients that connect over TCP without a key.", ""},
    {"access", "rule", live, if_written, stored<&Config::access, &Access::rules, read_rules>(Type::entries),
     "", ""},
    {"access", "key", live, if_written, stored<&Config::access, &Access::keys, read_keys>(Type::entries), "",
     ""},
    {"access.rule", "users", live, if_written, part(Type::list),
     "Names or numbers of users that get these roles. A name that does not exist is ignored, with a log "
     "line.",
     ""},
    {"access.rule", "groups", live, if_written, part(Type::list),
     "Names or numbers of groups whose members get these roles. Changes of the members take effect within a "
     "minute, without a reload.",
     ""},
    {"access.rule", "roles", live, if_written, part(Type::list), "The roles that they get.", ""},
    {"access.key", "name", live, if_written, part(Type::text), "A name for log lines, unique among keys.",
     ""},
    {"access.key", "public-key", live, if_written, part(Type::text),
     R"(The public half of the key pair that "resourcectl keygen" made (Z85).)", ""},
    {"access.key", "roles", live, if_written, part(Type::list), "Roles of clients with this key.", ""},
    {"access.key", "hosts", live, if_written, part(Type::text),
     "The hosts, as a hostlist, to which the key is bound: its agents may report only these, and it can "
     "change no other target and nothing that concerns more than single hosts. Without it, all hosts.",
     ""},

    {"allocations", "max-bytes", live, always,
     integer<&Config::allocations, &Allocations::max_bytes>(min_ledger, max_ledger),
     "The largest ledger, in bytes: R as text, ids and notes of all allocations. Where there are partitions, "
     "one of them may have half of it. A request beyond that is refused (EDQUOT).",
     ""},
    {"allocations", "free-expired", live, always, flag<&Config::allocations, &Allocations::free_expired>(),
     "Free an allocation when it expires. Otherwise its scheduler does. Nothing is freed so in the first "
     "minute after a start, or after a jump of the clock.",
     ""},

    {"limits", "outstanding-requests", live, always,
     integer<&Config::limits, &Limits::outstanding_requests>(1, max_requests),
     "Unanswered requests of one client, streams included. Further ones are refused.", ""},
    {"limits", "requests-per-second", live, always,
     integer<&Config::limits, &Limits::requests_per_second>(1, max_requests_per_second),
     "Requests of one client in a second. Further ones are refused. A client that exceeds the limit by as "
     "many again is disconnected.",
     ""},
    {"limits", "connections-per-uid", restart, always,
     integer<&Config::limits, &Limits::connections_per_uid>(1, max_connections),
     "Connections of one uid, or of one address on TCP, over all endpoints. Never more than a quarter of the "
     "process's file descriptors.",
     ""},
    {"limits", "journal-consumers", live, always,
     integer<&Config::limits, &Limits::journal_consumers>(1, max_requests),
     "Journal streams of one uid or key.", ""},
    {"limits", "handshake-timeout", restart, always,
     milliseconds<&Config::limits, &Limits::handshake_timeout>(max_handshake),
     "How long a connection may take for its handshake, and a local message from its first to its last byte.",
     ""},

    {"monitor", "mode", restart, always, named<&Config::monitor, &Monitor::mode, parse_monitor_mode>(),
     "static: every node is always online. agents: a node is online while its resource-agent is connected "
     "and sends beats, and offline otherwise.",
     ""},
    {"monitor", "torpid-after", live, always,
     seconds<&Config::monitor, &Monitor::torpid_after>(more_than_zero),
     "How long an agent may be silent before its node is torpid (gets no new work).", ""},
    {"monitor", "offline-after", live, always,
     seconds<&Config::monitor, &Monitor::offline_after>(more_than_zero),
     "How long an agent may be silent before its node is offline. If this is not longer than torpid-after, "
     "the node is not torpid before.",
     ""},
    {"monitor", "grace", live, always, seconds<&Config::monitor, &Monitor::grace>(),
     "How long an agent that lost its connection may take to reconnect before its node is offline.", ""},
    {"monitor", "coalesce", live, always,
     seconds<&Config::monitor, &Monitor::coalesce>({.least = 0, .most = max_coalesce}),
     "How long to collect changes of nodes, so that schedulers get one change for many.", ""},
    {"monitor", "flap-count", live, always, integer<&Config::monitor, &Monitor::flap_count>(0, max_flaps),
     "A node that goes offline more often than this within flap-window is drained. 0 turns this off.", ""},
    {"monitor", "flap-window", live, always, seconds<&Config::monitor, &Monitor::flap_window>(),
     "The time span for flap-count.", ""},
    {"monitor", "lost-after", live, always, seconds<&Config::monitor, &Monitor::lost_after>(),
     "With resource.shrink-lost: how long a node may be offline before it is removed. The default is the "
     "value of "
     "offline-after.",
     ""},
    {"monitor", "drain-lost", live, if_written, seconds<&Config::monitor, &Monitor::drain_lost>(),
     "Drain nodes that have been torpid or offline for this long, with the reason \"lost: silent since "
     "TIME\". Not set: never.",
     ""},
    {"monitor", "health-return", live, always,
     named<&Config::monitor, &Monitor::health_return, parse_health_return>(),
     "manual: an operator undrains nodes that were unhealthy or silent. auto: the daemon undrains those that "
     "it drained for that, once their check passes; silent nodes without checks, once their agents report "
     "again.",
     ""},
    {"monitor", "health-gate", live, always, flag<&Config::monitor, &Monitor::health_gate>(),
     "A node that comes online stays down until a check of its agent passes; one whose agent runs no checks "
     "stays down.",
     ""},

    {"flux", "socket", restart, if_written, path<&Config::flux, &Flux::socket>(),
     "The Unix socket for the instance. Without it none can attach.", R"("/run/resourced/flux")"},
    {"flux", "user", restart, if_written, stored<&Config::flux, &Flux::user, read_flux_user>(Type::text),
     "The owner of the instance, by name or number, if that is neither root nor the daemon's own user. With "
     "its instance it gets all rights.",
     R"("1001")"},

    {"http", "listen", restart, if_written,
     stored<&Config::http, &Http::listen, read_http_listen, tell<std::vector<std::string>>>(Type::list),
     "Addresses with ports (*:PORT is all of IPv4 and IPv6), and Unix sockets, whose mode is "
     "bus.socket-mode. Beyond loopback token-file, "
     "certificate and key are required, unless insecure is true.",
     R"(["127.0.0.1:7480", "[::1]:7480", "unix:///run/resourced/http"])"},
    {"http", "token-file", live, if_written, path<&Config::http, &Http::token_file>(),
     "A file with the tokens that clients on TCP have to show; see docs/security.md. A reload reads it "
     "again.",
     R"("http.tokens")"},
    {"http", "certificate", live, if_written, path<&Config::http, &Http::certificate>(),
     "A PEM file with the certificate chain: TCP addresses then speak TLS. A reload reads it again, for new "
     "connections.",
     R"("http.crt")"},
    {"http", "key", live, if_written, path<&Config::http, &Http::key>(),
     "A PEM file with the certificate's private key. ECDSA takes much less of the daemon's time than RSA.",
     R"("http.key")"},
    {"http", "insecure", restart, if_written, flag<&Config::http, &Http::insecure>(),
     "Allow addresses beyond loopback without tokens or without TLS. A client there without a token has the "
     "roles in access.anonymous.",
     ""},
    {"http", "names", live, if_written,
     stored<&Config::http, &Http::names, read_http_names, tell<std::vector<std::string>>>(Type::list),
     "Names by which clients address this server, besides localhost, its addresses and the name of this "
     "host. Requests with other names are refused.",
     R"(["resourced.example.com"])"},
    {"http", "connections", restart, if_written,
     integer<&Config::http, &Http::connections>(1, max_connections),
     "HTTP connections in all. One address or uid may have a quarter of them, but at least 16.", ""},

    {"cluster", "etcd", restart, if_written,
     stored<&Config::cluster, &Cluster::etcd, read_etcd, tell<std::vector<std::string>>>(Type::list),
     "The endpoints of etcd 3.4 or later, http://HOST:PORT or https://HOST:PORT; they are tried in turn.",
     R"(["http://etcd1:2379", "http://etcd2:2379", "http://etcd3:2379"])"},
    {"cluster", "name", restart, if_written,
     stored<&Config::cluster, &Cluster::name, read_member, tell_text>(Type::text),
     "The name of this daemon, unique in the cluster. By default the name of the host.", R"("mgmt1")"},
    {"cluster", "prefix", restart, if_written,
     stored<&Config::cluster, &Cluster::prefix, read_prefix, tell<std::string>>(Type::text),
     "The beginning of all keys in etcd. Clusters that share an etcd need different ones.", ""},
    {"cluster", "lease-ttl", restart, if_written,
     seconds<&Config::cluster, &Cluster::lease_ttl>(lease_bounds),
     "How long after the leader's last sign of life it is replaced. By default etcd grants at least 2 s.",
     ""},
    {"cluster", "takeover-grace", restart, if_written,
     seconds<&Config::cluster, &Cluster::takeover_grace>(grace_bounds),
     "How long nodes that were online stay so after a takeover, and after the restart of a daemon on its "
     "own, "
     "until their agents have connected again. With 0 all are offline at first.",
     ""},
    {"cluster", "snapshot-events", restart, if_written,
     integer<&Config::cluster, &Cluster::snapshot_events, std::uint64_t>(min_snapshot_events,
                                                                         max_snapshot_events),
     "Number of events after which a snapshot of the state is written to etcd, which keeps twenty times as "
     "many events. A daemon that was off for longer, or has an empty state directory, starts from the "
     "snapshot.",
     ""},
    {"cluster", "advertise", restart, if_written, filled_text<&Config::cluster, &Cluster::advertise>(),
     "The endpoint at which clients reach this daemon, for other members to show. By default its first one.",
     R"("tcp://mgmt1:7481")"},
    {"cluster", "user", live, if_written, filled_text<&Config::cluster, &Cluster::user>(),
     "A user of etcd with read and write access to the prefix.", R"("resourced")"},
    {"cluster", "password-file", live, if_written, path<&Config::cluster, &Cluster::password_file>(),
     "A file with the password of that user, which only the daemon's own user may read.",
     R"("etcd.password")"},
    {"cluster", "certificate", live, if_written, path<&Config::cluster, &Cluster::certificate>(),
     "A PEM file with the client certificate for https endpoints.", R"("etcd-client.crt")"},
    {"cluster", "key", live, if_written, path<&Config::cluster, &Cluster::key>(),
     "A PEM file with its private key.", R"("etcd-client.key")"},
    {"cluster", "ca-file", live, if_written, path<&Config::cluster, &Cluster::ca_file>(),
     "A PEM file with the authorities of etcd. By default those that this system trusts.",
     R"("etcd-ca.crt")"},

    {"queues.NAME", "hosts", live, if_written, part(Type::text),
     R"(The hosts of the queue, or "all". They get the property "+NAME", here "+batch".)", ""},
});

}  // namespace

std::span<const Section> sections() noexcept { return sections_table; }

std::span<const Setting> settings() noexcept { return settings_table; }

std::span<const Setting> settings_of(std::string_view section) noexcept {
  const auto is_of = [section](const Setting& setting) { return setting.section == section; };
  const auto first = std::find_if(settings_table.begin(), settings_table.end(), is_of);
  return {first, std::find_if_not(first, settings_table.end(), is_of)};
}

Seconds read_seconds(const TableReader& table, const Setting& setting) {
  const double seconds = table.duration(setting.key)->count();
  const Bounds& bounds = *setting.value.bounds;
  if (bounds.excludes_least && seconds == bounds.least)
    table.fail(setting.key, fmt::format("must be more than {}", bounds.least));
  if (seconds < bounds.least)
    table.fail(setting.key, fmt::format("{}s is less than {}s", seconds, bounds.least));
  if (seconds > bounds.most)
    table.fail(setting.key, fmt::format("{}s is more than {}s", seconds, bounds.most));
  return Seconds(seconds);
}

std::chrono::milliseconds read_milliseconds(const TableReader& table, const Setting& setting) {
  const double seconds = table.duration(setting.key)->count();
  const double milliseconds = std::round(seconds * 1000);
  const Bounds& bounds = *setting.value.bounds;
  if (milliseconds < bounds.least * 1000 || milliseconds > bounds.most * 1000)
    table.fail(setting.key, fmt::format("{}s is not from 1ms to {}s", seconds, std::floor(bounds.most)));
  return std::chrono::milliseconds(static_cast<std::int64_t>(milliseconds));
}

}  // namespace resourced::config
