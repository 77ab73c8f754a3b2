"""Faults, each with the events that must follow. A fault waits for events, and repairs everything at its end.

Each function gets the Cluster (cluster.py). Those in TAKEOVERS make another daemon lead."""

from members import Failure, until

# Faults of the leader


def kill_leader(cluster):
    with cluster.takeover() as former:
        former.kill()
    former.start()


def kill_two_leaders(cluster):
    with cluster.takeover() as first:
        first.kill()
    if cluster.in_use() < 3:
        first.start()
        cluster.until_following(first)
    with cluster.takeover() as second:
        second.kill()
    if not first.runs():
        first.start()
    second.start()


def kill_leader_and_successor(cluster):
    """The successor is killed before it has answered a change."""
    with cluster.takeover() as former:
        former.kill()
        cluster.until_led()
        successor = cluster.leader()
        successor.kill()
        former.start()
    successor.start()


def kill_all_daemons(cluster):
    with cluster.takeover():
        for daemon in cluster.daemons:
            daemon.kill()
        for daemon in cluster.daemons:
            daemon.start()


def pause_leader(cluster):
    """The leader continues after the first change of its successor, or just before the successor serves."""
    early = cluster.random.random() < 0.5
    with cluster.takeover() as former:
        former.pause()
        if early:
            cluster.until_led()
            former.resume()
    former.resume()
    cluster.until_answered(20)


def pause_leader_for_a_lease(cluster):
    """The leader continues at about the end of its lease."""
    former = cluster.leader()
    former.pause()
    cluster.rest(cluster.random.uniform(1.2, 3.0))
    former.resume()
    cluster.until_answered(20)


def stop_leader(cluster):
    with cluster.takeover() as former:
        former.terminate()
    if (status := former.until_ended()) != 0:
        raise Failure(f"{former.name} has ended with {status}")
    former.start()


def hand_over(cluster):
    def is_done():
        command = cluster.resourcectl("cluster", "hand-over")
        _, text = command.communicate()
        # On a busy machine another daemon than the successor may lead next.
        if command.returncode == 0 or "did not take over in time" in text:
            return True
        # The former leader may not be connected again yet.
        if "there is no standby" in text:
            return False
        raise Failure(f"hand-over: {text}")

    with cluster.takeover():
        until(is_done, "there is a standby to hand over to")


def cut_leader_from_etcd(cluster):
    both = cluster.random.random() < 0.5
    with cluster.takeover() as former:
        ends = [[former.host], cluster.etcd_hosts]
        if not both and cluster.random.random() < 0.5:
            ends.reverse()
        cluster.network.between(*ends, both=both, cut=True)
    cluster.network.mend()
    cluster.until_answered(10)


def cut_leader_from_all(cluster):
    with cluster.takeover() as former:
        cluster.network.between([former.host], cluster.network.address, cut=True)
    cluster.network.mend()
    cluster.until_answered(10)


def fill_disk_of_leader(cluster):
    with cluster.takeover() as former:
        former.disk.fill()
    former.until_ended()
    former.disk.make_room()
    former.start()


def kill_leader_on_slow_links(cluster):
    cluster.network.between(cluster.daemon_hosts, cluster.etcd_hosts, delay=cluster.random.uniform(0.002, 0.03),
                            loss=cluster.random.choice([0, 0.02]))
    cluster.until_answered(10)
    kill_leader(cluster)
    cluster.network.mend()


def kill_leader_and_member_of_etcd(cluster):
    member = cluster.some_etcd()
    with cluster.takeover() as former:
        member.kill()
        former.kill()
    member.start()
    former.start()
    cluster.etcd.until_serving(member)


def cut_member_of_etcd_and_kill_leader(cluster):
    """Daemons can reach the member, but it learns nothing new."""
    member = cluster.some_etcd()
    cluster.network.between([member.host], [host for host in cluster.etcd_hosts if host != member.host], cut=True)
    kill_leader(cluster)
    cluster.network.mend()
    cluster.etcd.until_serving(member)


def jump_and_kill_leader(cluster):
    for daemon in cluster.daemons:
        cluster.jump(daemon)
    kill_leader(cluster)


# Faults after which the leader may stay


def kill_standby(cluster):
    standby = cluster.some_standby()
    standby.kill()
    cluster.until_answered(20)
    standby.start()


def pause_standby(cluster):
    standby = cluster.some_standby()
    standby.pause()
    cluster.until_answered(50)
    standby.resume()


def cut_standby(cluster):
    standby = cluster.some_standby()
    cluster.network.between([standby.host], cluster.etcd_hosts, cut=True)
    cluster.until_answered(50)
    cluster.network.mend()


def fill_disk_of_standby(cluster):
    standby = cluster.some_standby()
    standby.disk.fill()
    cluster.until_answered(20)
    standby.until_ended()
    standby.disk.make_room()
    standby.start()


def kill_member_of_etcd(cluster):
    member = cluster.some_etcd()
    member.kill()
    cluster.until_answered(50)
    member.start()
    cluster.etcd.until_serving(member)


def kill_all_of_etcd(cluster):
    for member in cluster.etcd.members:
        member.kill()
    for member in cluster.etcd.members:
        member.start()
    cluster.until_answered(20)
    for member in cluster.etcd.members:
        cluster.etcd.until_serving(member)


def pause_member_of_etcd(cluster):
    member = cluster.some_etcd()
    member.pause()
    cluster.until_answered(50)
    member.resume()
    cluster.etcd.until_serving(member)


def cut_member_of_etcd(cluster):
    member = cluster.some_etcd()
    cluster.network.between([member.host], [host for host in cluster.etcd_hosts if host != member.host], cut=True)
    cluster.until_answered(50)
    cluster.network.mend()
    cluster.etcd.until_serving(member)


def cut_leader_from_member_of_etcd(cluster):
    cluster.network.between([cluster.leader().host], [cluster.some_etcd().host], cut=True)
    cluster.until_answered(50)
    cluster.network.mend()


def fill_disk_of_member_of_etcd(cluster):
    member = cluster.some_etcd()
    member.disk.fill()
    cluster.until_answered(100)
    member.disk.make_room()
    if member.runs():
        member.kill()
    member.start()
    cluster.etcd.until_serving(member)


def pause_majority_of_etcd(cluster):
    paused = cluster.random.sample(cluster.etcd.members, 2)
    for member in paused:
        member.pause()
    cluster.until_unanswered()
    for member in paused:
        member.resume()
    cluster.until_answered(20)


def cut_clients_from_leader(cluster):
    hosts = cluster.client_hosts
    cut = cluster.random.choice(hosts)
    cluster.network.between([cut], [cluster.leader().host], cut=True)
    cluster.until_answered(20, host=next(host for host in hosts if host != cut))
    cluster.network.mend()
    cluster.until_answered(10, host=cut)


def slow_clients(cluster):
    cluster.network.between(cluster.client_hosts, cluster.daemon_hosts, delay=cluster.random.uniform(0.01, 0.1), loss=0.02)
    cluster.until_answered(50)
    cluster.network.mend()


def slow_etcd(cluster):
    cluster.network.between(cluster.daemon_hosts, cluster.etcd_hosts, delay=cluster.random.uniform(0.005, 0.1),
                            loss=cluster.random.choice([0, 0.05]))
    cluster.until_answered(50)
    cluster.network.mend()


def jump_clock_of_leader(cluster):
    for _ in range(2):
        cluster.until_recorded(cluster.jump(cluster.leader()))
        cluster.until_answered(20)


def kill_agent(cluster):
    agent = cluster.random.choice(cluster.agents)
    agent.kill()
    cluster.until_answered(20)
    agent.start()


TAKEOVERS = {
    kill_leader: 6, kill_two_leaders: 1, kill_leader_and_successor: 1, kill_all_daemons: 1, pause_leader: 3,
    stop_leader: 4, hand_over: 6, cut_leader_from_etcd: 2, cut_leader_from_all: 2, fill_disk_of_leader: 2,
    kill_leader_on_slow_links: 1, kill_leader_and_member_of_etcd: 1, cut_member_of_etcd_and_kill_leader: 1,
    jump_and_kill_leader: 1,
}
OTHERS = {
    pause_leader_for_a_lease: 2, kill_standby: 1, pause_standby: 1, cut_standby: 1, fill_disk_of_standby: 1,
    kill_member_of_etcd: 1, kill_all_of_etcd: 1, pause_member_of_etcd: 1, cut_member_of_etcd: 1,
    cut_leader_from_member_of_etcd: 1, fill_disk_of_member_of_etcd: 1, pause_majority_of_etcd: 1,
    cut_clients_from_leader: 1, slow_clients: 1, slow_etcd: 1, jump_clock_of_leader: 1, kill_agent: 1,
}
FAULTS = {fault.__name__: (fault, weight) for fault, weight in (TAKEOVERS | OTHERS).items()}
