import java.io.BufferedReader;
import java.io.File;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** HDFS with two data nodes, and YARN with two node managers on it, on loopback until the input closes. The argument is a folder, which gets
 *  the settings for HADOOP_CONF_DIR; each line of the input is a local path to copy into the root. */
public final class MiniHadoop {
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[0]).getAbsoluteFile();
        System.setProperty("user.dir", folder.getPath());
        System.setProperty("test.build.data", folder.getPath());
        YarnConfiguration conf = new YarnConfiguration();
        conf.set("hdfs.minidfs.basedir", new File(folder, "hdfs").getPath());
        conf.setBoolean("dfs.permissions.enabled", false);
        conf.set("yarn.scheduler.capacity.root.queues", "default");
        conf.set("yarn.scheduler.capacity.root.default.capacity", "100");
        conf.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1");
        conf.setInt("yarn.scheduler.minimum-allocation-mb", 256);
        conf.setInt("yarn.nodemanager.resource.memory-mb", 4096);
        conf.setBoolean("yarn.nodemanager.vmem-check-enabled", false);
        conf.setBoolean("yarn.nodemanager.pmem-check-enabled", false);
        conf.setBoolean("yarn.nodemanager.disk-health-checker.enable", false);
        conf.setBoolean("yarn.minicluster.fixed.ports", false);
        try (MiniDFSCluster hdfs = new MiniDFSCluster.Builder(conf).numDataNodes(2).build(); MiniYARNCluster yarn = new MiniYARNCluster("rmqlb", 2, 1, 1)) {
            hdfs.waitActive();
            conf.set("fs.defaultFS", hdfs.getURI().toString());
            yarn.init(conf);
            yarn.start();
            if (!yarn.waitForNodeManagersToConnect(300_000)) {
                throw new IllegalStateException("the node managers did not connect");
            }
            Configuration settings = new Configuration(false);
            for (Map.Entry<String, String> each : yarn.getConfig()) {
                if (each.getKey().startsWith("yarn.")) {
                    settings.set(each.getKey(), each.getValue());
                }
            }
            settings.set("fs.defaultFS", hdfs.getURI().toString());
            for (String name : new String[] {"core-site.xml", "yarn-site.xml"}) {
                try (OutputStream file = new FileOutputStream(new File(folder, name))) {
                    settings.writeXml(file);
                }
            }
            say("ready " + hdfs.getURI() + " " + hdfs.getHttpUri(0));
            BufferedReader paths = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
            for (String path = paths.readLine(); path != null; path = paths.readLine()) {
                hdfs.getFileSystem().copyFromLocalFile(new Path(path), new Path("/"));
                say("copied");
            }
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
