// The rows of the table, by subject.
#pragma once

#include <vector>

#include "bench/load/cluster.hpp"
#include "bench/measure/row.hpp"

namespace resourced::bench {

[[nodiscard]] std::vector<Row> idset_rows();
[[nodiscard]] std::vector<Row> hostlist_rows();
[[nodiscard]] std::vector<Row> resource_set_rows();
[[nodiscard]] std::vector<Row> request_rows();
[[nodiscard]] std::vector<Row> start_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> acquire_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> drain_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> ledger_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> status_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> journal_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> past_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> memory_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> fan_out_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> agent_rows(const Bench& bench);
[[nodiscard]] std::vector<Row> partition_rows(const Bench& bench);
/// Rows of clusters with etcd; none if it is not installed.
[[nodiscard]] std::vector<Row> replica_rows(const Bench& bench);

}  // namespace resourced::bench
