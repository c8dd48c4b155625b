import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** YARN with two node managers on loopback until its input closes: `FOLDER HDFS_URI`; its settings go into the file `yarn-site.xml` there. */
public final class MiniYarn {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]).getAbsoluteFile();
        System.setProperty("user.dir", folder.getPath());
        System.setProperty("test.build.data", folder.getPath());
        YarnConfiguration conf = new YarnConfiguration();
        conf.set("fs.defaultFS", arguments[1]);
        conf.set("yarn.scheduler.capacity.root.queues", "default");
        conf.set("yarn.scheduler.capacity.root.default.capacity", "100");
        conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1");
        conf.setInt("yarn.scheduler.minimum-allocation-mb", 256);
        conf.setInt("yarn.nodemanager.resource.memory-mb", 4096);
        conf.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
        conf.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
        conf.setBoolean("yarn.nodemanager.disk-health-checker.enable", false);
        conf.setBoolean("yarn.minicluster.fixed.ports", false);
        try (MiniYARNCluster cluster = new MiniYARNCluster("rmqlb", 2, 1, 1)) {
            cluster.init(conf);
            cluster.start();
            if (!cluster.waitForNodeManagersToConnect(60_000)) {
                throw new IllegalStateException("the node managers did not connect");
            }
            Configuration settings = cluster.getConfig();
            try (OutputStream file = new FileOutputStream(new File(folder, "yarn-site.xml"))) {
                settings.writeXml(file);
            }
            System.out.println("ready");
            System.out.flush();
            while (System.in.read() >= 0) { }
        }
    }
}
