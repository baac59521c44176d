#!/bin/sh
# Configure ssh so that mpirun can start ranks on other instances. The images run this when they are built.
#
#     setup_mpi.sh NAME=VALUE...
#
# NAME=VALUE: variables of what ssh starts, above all PATH. mpirun starts its daemon there without a login, so no
#             profile is read, and no variable of the image's ENV is set.
set -eu

variables=
for variable; do
    case $variable in
        ?*=*) variables="$variables \"$variable\"" ;;
        *) echo "$0: found $variable, expected NAME=VALUE" >&2 && exit 2 ;;
    esac
done
mkdir -p /etc/ssh

# StrictModes: keys that a platform mounts may belong to another user. UsePAM: PAM needs root, and an ordinary user may
# run this sshd. MaxStartups: one instance may be reached by all the others at once.
cat > /etc/ssh/sshd_config <<CONFIG
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
MaxStartups 1000
PrintMotd no
PidFile none
Subsystem sftp internal-sftp
SetEnv$variables
CONFIG

# Instances are new in every job, and make their host keys when they start: there is no key to compare with. An sshd on
# another instance may start later than mpirun: ssh tries once a second. It gives up in seconds, so that a job does not
# wait for an instance that is not there: without ConnectTimeout, each try may take two minutes.
cat > /etc/ssh/ssh_config <<'CONFIG'
Host *
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    GlobalKnownHostsFile /dev/null
    LogLevel ERROR
    ConnectTimeout 10
    ConnectionAttempts 20
CONFIG

# The program that starts sshd makes the host key: one in an image would be the same wherever the image runs.
cat > /etc/ssh/start_sshd <<'PROGRAM'
#!/bin/sh
set -eu
keys=/etc/ssh
[ -w "$keys" ] || keys=$(mktemp -d)
[ -e "$keys/ssh_host_ed25519_key" ] || ssh-keygen -q -t ed25519 -N '' -f "$keys/ssh_host_ed25519_key"
# sshd requires this folder when root starts it, and /run may be empty in a new container.
[ "$(id -u)" -ne 0 ] || mkdir -p -m 0755 /run/sshd
exec /usr/sbin/sshd.distribution -h "$keys/ssh_host_ed25519_key" "$@"
PROGRAM
chmod 755 /etc/ssh/start_sshd

# For a platform that starts sshd with a configuration of its own, and PAM.
for variable; do
    name=${variable%%=*}
    touch /etc/environment
    sed -i "/^$name=/d" /etc/environment
    printf '%s="%s"\n' "$name" "${variable#*=}" >> /etc/environment
done

# Whatever starts sshd starts it with a key of this container.
rm -f /etc/ssh/ssh_host_*
dpkg-divert --quiet --local --rename --divert /usr/sbin/sshd.distribution --add /usr/sbin/sshd
ln -s /etc/ssh/start_sshd /usr/sbin/sshd

# Without InfiniBand, UCX leaves the messages to Open MPI's own transports. Debian and Ubuntu disable it in this file.
sed -i -e '/^pml *= *^ucx *$/d' -e '/^osc *=/s/^\(osc *= *^\)ucx,/\1/' /etc/openmpi/openmpi-mca-params.conf

# The password "*" allows no password but allows keys. The default of useradd, "!", allows neither.
useradd --create-home --shell /bin/bash --password '*' ranks
install --directory --owner=ranks --group=ranks --mode=0700 /home/ranks/.ssh
